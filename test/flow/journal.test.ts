import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FlowInfo } from '../../dist/flow/journal/journal.js';
import { openJournal } from '../../dist/flow/journal/open.js';
import { ALL_STORES, type TestStore } from '../support/stores.js';
import { end } from './support.js';

const BY = { host: 'here', pid: 1 };

describe.each(ALL_STORES)('the journal on %s', (_name, fresh) => {
  let store: TestStore;
  beforeAll(async () => {
    store = await fresh();
  });
  afterAll(() => store.stop());
  const info = (id: string): FlowInfo => ({
    id,
    name: 'n',
    file: 'f.yaml',
    state: 'running',
    size: 3,
    created: 1,
    ...BY,
  });

  it('keeps node ends exactly and in order, whatever their ids and values', async () => {
    const journal = await openJournal(store.url);
    await journal.begin(info('exact'), '{"nodes":{}}');
    const ends = [
      end('a'),
      end('b "[0]"\u00e9', { value: { deep: [null, 'x'] } }),
      end('__proto__', { state: 'failed', exit: 3, error: 'why', attempts: 2 }),
    ];
    await journal.write(ends.slice(0, 2));
    await journal.write(ends.slice(2));
    const reader = await openJournal(store.url);
    expect(await reader.ends('exact')).toEqual(ends);
    expect(await reader.definition('exact')).toBe('{"nodes":{}}');
    expect(await reader.get('exact')).toEqual(info('exact'));
    await journal.finish('failed', { done: 2 });
    expect(await reader.get('exact')).toMatchObject({
      state: 'failed',
      counts: { done: 2 },
      finished: expect.any(Number),
    });
    expect(await reader.isHeld('exact')).toBe(false);
    expect([await reader.get('nope'), await reader.definition('nope'), await reader.ends('nope')]).toEqual([
      undefined,
      undefined,
      [],
    ]);
    await journal.close();
    await reader.close();
  });

  it('has one holder: a runner that was replaced cannot write any more', async () => {
    const [first, second] = [await openJournal(store.url), await openJournal(store.url)];
    await first.begin(info('held'), '');
    await first.write([end('a')]);
    expect(await first.hold()).toBe('held');
    expect(await second.isHeld('held')).toBe(true);
    expect(await second.takeOver('held', BY, false)).toBe(false);
    expect(await second.takeOver('held', { host: 'there', pid: 2 }, true)).toBe(true);
    await expect((async () => first.write([end('zombie')]))()).rejects.toMatchObject({ code: 'LEASE_LOST' });
    expect(await first.hold()).toBe('lost');
    await first.finish('done', {});
    await second.write([end('b')]);
    expect((await second.ends('held')).map(({ id }) => id)).toEqual(['a', 'b']);
    expect(await second.get('held')).toMatchObject({ state: 'running', host: 'there', pid: 2 });
    await first.close();
    await second.close();
  });

  it('tells the holder to cancel, cancels a flow without a holder, and forgets a flow', async () => {
    const [runner, other] = [await openJournal(store.url), await openJournal(store.url)];
    await runner.begin(info('asked'), '');
    expect(await other.cancel('asked')).toBe(true);
    expect(await runner.hold()).toBe('cancel');
    await runner.finish('interrupted', {});
    expect(await other.cancel('asked')).toBe(true);
    expect(await other.get('asked')).toMatchObject({ state: 'cancelled' });
    expect([await other.cancel('asked'), await other.cancel('nope')]).toEqual([false, false]);
    await other.forget('asked');
    expect((await other.list()).map(({ id }) => id)).not.toContain('asked');
    await runner.close();
    await other.close();
  });

  it('remembers nodes between runs', async () => {
    const journal = await openJournal(store.url);
    const memory = { key: 'k', parts: { command: 'c' }, digest: 'd', seconds: 1.5, at: 7, value: [1] };
    await journal.remember('flow', [
      ['a', memory],
      ['b', { ...memory, value: undefined }],
    ]);
    await journal.remember('flow', [['a', { ...memory, key: 'k2' }]]);
    const known = await journal.recall('flow');
    expect([...known.keys()].sort()).toEqual(['a', 'b']);
    expect(known.get('a')).toEqual({ ...memory, key: 'k2' });
    expect((await journal.recall('other')).size).toBe(0);
    await journal.close();
  });
});
