import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { flow, map, node, run } from '../../dist/flow/index.js';
import { openJournal } from '../../dist/flow/journal/open.js';
import { startCluster } from '../support/redis.js';

describe('a flow on Redis Cluster', () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.stop());

  it('keeps each flow in one slot: it can run, fail, be resumed, be listed and be forgotten', async () => {
    let broken = true;
    const list = node(() => [1, 2, 3]);
    const parts = map(list, (item) => {
      if (broken && item === 2) throw new Error('broken');
      return item;
    });
    const made = flow({ list, parts }, { name: 'clustered', cache: true });
    expect((await run(made, { store: cluster.url, keepGoing: true })).state).toBe('failed');
    broken = false;
    expect(await run(made, { store: cluster.url, resume: true })).toMatchObject({
      state: 'done',
      results: { parts: [1, 2, 3] },
    });
    const journal = await openJournal(cluster.url);
    const [info, ...others] = await journal.list();
    expect({ info, others }).toMatchObject({ info: { name: 'clustered', state: 'done', size: 2 }, others: [] });
    expect((await journal.recall('clustered')).get('list')).toMatchObject({ value: [1, 2, 3] });
    expect(await journal.isHeld(info!.id)).toBe(false);
    await journal.forget(info!.id);
    expect(await journal.list()).toEqual([]);
    await journal.close();
  });
});
