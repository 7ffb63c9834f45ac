import { afterEach, describe, expect, it } from 'vitest';
import type { Entry } from '../../dist/job/job.js';
import { finish, lose, release } from '../../dist/job/transitions.js';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { startServer } from '../grpc/support/server.js';
import { newJob, settlementOf } from '../support/jobs.js';
import { Line } from '../support/proxy.js';
import { freshPostgres, freshRedis, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function served(): Promise<TestStore> {
  const server = await startServer({ grace: 0 });
  return { name: 'grpc', url: `grpc://${server.address}`, stop: async () => server.close() };
}

/** The same store twice: directly, and through a line that can be cut. */
async function openTwice({ url, stop }: TestStore): Promise<{ direct: Store; cuttable: Store; line: Line }> {
  cleanups.push(stop);
  const line = await Line.to(Number(new URL(url).port));
  const through = new URL(url);
  through.port = String(line.port);
  const [direct, cuttable] = [
    await openStore(url, { timeout: 10_000 }),
    await openStore(through.href, { timeout: 10_000 }),
  ];
  cleanups.push(
    () => line.close(),
    () => direct.close(),
    () => cuttable.close(),
  );
  return { direct, cuttable, line };
}

describe.each([
  ['redis', freshRedis],
  ['postgres', freshPostgres],
  ['grpc', served],
] as const)('a settlement that is repeated because its reply was lost, on %s', (_name, open) => {
  it('counts as applied if its first try was, and stays refused if its token was stale', async () => {
    const { direct, cuttable, line } = await openTwice(await open());
    const session = (worker: string) => ({ queue: 'q', worker, lease: 60_000 });
    for (const worker of ['a', 'b']) await direct.join('q', worker, { lease: 60_000, info: '{}' });
    await direct.add(
      'q',
      ['kept', 'taken', 'ended elsewhere', 'ended with the same counts'].map((id) => newJob(id)),
    );
    const { entries } = await direct.claim(session('a'), 4);
    const lost = entries.slice(1, 3).map((entry) => settlementOf(entry, lose(entry.job!, 5, 'a')));
    const returned = settlementOf(entries[3]!, release(entries[3]!.job!));
    expect(await direct.settle('q', [...lost, returned])).toEqual([true, true, true]);
    const again = await direct.claim(session('b'), 3);
    const others = again.entries.filter(({ job }) => job!.id.startsWith('ended'));
    const ends = others.map((other) => settlementOf(other, finish(other.job!)));
    expect(await direct.settle('q', ends)).toEqual([true, true]);

    const isApplied = async () => (await direct.count('q')).done === 3;
    line.onReply = async () => {
      if (!(await isApplied())) return true;
      line.onReply = () => true;
      line.cut();
      return false;
    };
    const settlements = entries.map((entry) => settlementOf(entry, finish(entry.job!)));
    expect(await cuttable.settle('q', settlements)).toEqual([true, false, false, false]);
    expect(await direct.count('q')).toMatchObject({ done: 3, active: 1 });
  });

  it('stays refused if its claim was undone and the same worker has run the job again', async () => {
    const { direct, cuttable, line } = await openTwice(await open());
    const session = { queue: 'q', worker: 'a', lease: 60_000 };
    await direct.join('q', 'a', { lease: 60_000, info: '{}' });
    await direct.add('q', [newJob('first'), newJob('twice')]);
    const { entries } = await direct.claim(session, 2);
    const [first, twice] = entries as [Entry, Entry];
    expect(await direct.settle('q', [settlementOf(twice, release(twice.job!))])).toEqual([true]);
    const claimed = direct.now();
    await until('the clock to move on', () => direct.now() > claimed + 1);
    const [again] = (await direct.claim(session, 1)).entries as [Entry];
    expect(await direct.settle('q', [settlementOf(again, finish(again.job!))])).toEqual([true]);
    line.onReply = async () => {
      if ((await direct.count('q')).done < 2) return true;
      line.onReply = () => true;
      line.cut();
      return false;
    };
    const ends = [first, twice].map((entry) => settlementOf(entry, finish(entry.job!)));
    expect(await cuttable.settle('q', ends)).toEqual([true, false]);
  });
});
