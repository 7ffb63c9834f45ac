import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { FlowRow, FlowView } from '../../dist/dashboard/api.js';
import { type FlowViews, flowViews } from '../../dist/dashboard/views/flow/flows.js';
import type { FlowInfo, Journal } from '../../dist/flow/journal/journal.js';
import { openJournal } from '../../dist/flow/journal/open.js';
import { openDatabase } from '../../dist/store/sqlite/file/driver.js';
import { end, place } from '../flow/support.js';
import { freshSqlite, STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';

const info = (id: string, size: number): FlowInfo => ({
  id,
  name: 'n',
  file: 'f.yaml',
  state: 'running',
  size,
  created: Date.now(),
  host: 'here',
  pid: 1,
});

/** A definition as runners store it. */
function definition(nodes: Record<string, object>): string {
  return JSON.stringify({ name: 'n', env: {}, tokens: {}, nodes });
}

const stateOf = (view: FlowView | undefined, id: string) => view?.nodes.find((node) => node.id === id)?.state;

describe.each(STORES)('flows in the dashboard, on %s', (_name, fresh) => {
  let store: TestStore;
  let views: FlowViews;
  let journal: Journal | undefined;
  beforeAll(async () => {
    store = await fresh();
    views = flowViews(store.url);
  });
  afterEach(async () => {
    await journal?.close();
    journal = undefined;
  });
  afterAll(async () => {
    await views.close();
    await store.stop();
  });

  it('are none in a store without flows, and looking at it creates nothing', async () => {
    expect(await views.flows()).toMatchObject({ flows: [], more: false });
    expect(await views.flow('nope')).toBeUndefined();
    expect(await views.cancelFlow('nope')).toBe(false);
  });

  it('show what runs while a real runner works, and how it ended', async () => {
    const dir = place();
    const needs = ['one'];
    dir.write('flow.json', {
      nodes: {
        one: { run: 'true' },
        list: { run: 'echo [1,2,3]' },
        each: { run: 'test $CRORE_ITEM = 1 || { until test -e go; do sleep 0.05; done; }', map: 'list' },
        wait: { run: 'until test -e go; do sleep 0.05; done', needs },
        bad: { run: 'echo oh no >&2; test -e nothing', needs: ['wait'] },
        after: { run: 'true', needs: ['bad'] },
      },
    });
    const running = dir.start('run', 'flow.json', '--store', store.url, '-j', '4', '-q');
    const row = (): Promise<FlowRow | undefined> => views.flows().then(({ flows }) => flows[0]);
    const { id } = (await until('the flow to be listed with what runs', async () => {
      const found = await row();
      return (found?.counts.running ?? 0) >= 2 ? found : undefined;
    }))!;
    expect(await row()).toMatchObject({ name: 'flow', state: 'running', size: 6, pid: running.child.pid });
    const view = await until('the running parts', async () => {
      const seen = await views.flow(id);
      return seen?.nodes.some(({ items }) => items?.running === 2) ? seen : undefined;
    });
    expect(view!.flow.counts).toEqual({ done: 2, running: 2, blocked: 2 });
    expect(['one', 'wait', 'bad', 'each'].map((node) => stateOf(view, node))).toEqual([
      'done',
      'running',
      'blocked',
      'running',
    ]);
    const [wait, each] = ['wait', 'each'].map((node) => view!.nodes.find((one) => one.id === node)!);
    expect(wait).toMatchObject({ layer: 1, attempts: 1, start: expect.any(Number) });
    expect(each!.items).toEqual({ done: 1, running: 2 });
    dir.write('go', '');
    await until('the flow to end', async () => (await row())?.state === 'failed');
    const ended = (await views.flow(id))!;
    expect(ended.flow).toMatchObject({ state: 'failed', finishedAt: expect.any(Number) });
    expect(ended.flow.counts).toEqual({ done: 4, failed: 1, skipped: 1 });
    expect(ended.nodes.find((node) => node.id === 'bad')).toMatchObject({ state: 'failed', exit: 1, output: 'oh no' });
    const path = ended.criticalPath.map((node) => ended.nodes[node]!.id);
    expect([
      ['one', 'wait', 'bad'],
      ['list', 'each'],
    ]).toContainEqual(path);
    await until('the runner to exit', () => running.child.exitCode !== null);
  });

  it('are cancelled on request: a runner stops, and a flow without one is marked', async () => {
    const dir = place();
    dir.write('slow.json', { nodes: { a: { run: 'sleep 600' } } });
    const running = dir.start('run', 'slow.json', '--store', store.url, '-q');
    const { id } = (await until('it to run', async () => {
      const [first] = (await views.flows()).flows;
      return first?.name === 'slow' && first.counts.running ? first : undefined;
    }))!;
    expect(await views.cancelFlow(id)).toBe(true);
    await until('the runner to stop', () => running.child.exitCode !== null);
    const view = (await views.flow(id))!;
    expect(view.flow.state).toBe('cancelled');
    expect(stateOf(view, 'a')).toBe('cancelled');
    expect(await views.cancelFlow(id)).toBe(false);
  });

  it('show a flow whose runner was killed as interrupted, with what it had done', async () => {
    const dir = place();
    dir.write('killed.json', { nodes: { a: { run: 'true' }, b: { run: 'sleep 600', needs: ['a'] } } });
    const running = dir.start('run', 'killed.json', '--store', store.url, '-q');
    const { id } = (await until('it to run', async () => {
      const [first] = (await views.flows()).flows;
      return first?.name === 'killed' && first.counts.running ? first : undefined;
    }))!;
    running.child.kill('SIGKILL');
    const row = await until(
      'its hold to end',
      async () => (await views.flows()).flows.find((flow) => flow.id === id && flow.state === 'interrupted'),
      { within: 20_000 },
    );
    expect(row!.counts).toEqual({ done: 1, ready: 1 });
    const view = await views.flow(id);
    expect(['a', 'b'].map((node) => stateOf(view, node))).toEqual(['done', 'ready']);
  });

  it('keep hostile ids and texts as they are', async () => {
    journal = await openJournal(store.url);
    const ids = ['<img src=x onerror=alert(1)>', '__proto__', 'constructor', '\u202e"quoted"', 'x'.repeat(512)];
    const nodes = `{${ids.map((id) => `${JSON.stringify(id)}:{"run":${JSON.stringify(id)}}`)}}`;
    await journal.begin(info('hostile', ids.length), `{"name":"n","env":{},"tokens":{},"nodes":${nodes}}`);
    await journal.write([end('__proto__'), end(ids[0]!, { state: 'failed', exit: 1, error: ids[0]!.repeat(1_000) })]);
    const view = (await views.flow('hostile'))!;
    expect(view.nodes.map(({ id }) => id)).toEqual(ids);
    expect(['__proto__', 'constructor'].map((id) => stateOf(view, id))).toEqual(['done', 'ready']);
    expect(view.nodes[0]!.error!.length).toBeLessThan(3_000);
    await journal.finish('interrupted', {});
  });

  it('show functions from the stored text: no module is loaded', async () => {
    const dir = place();
    const url = new URL('../../dist/flow/index.js', import.meta.url).href;
    dir.write(
      'flow.mjs',
      `import { flow, node } from '${url}';
       if (process.env.LOOKING) throw new Error('loaded');
       const a = node(() => 1); export default flow({ a, b: node({ needs: { a } }, () => 2) });`,
    );
    expect(dir.crore('run', 'flow.mjs', '--store', store.url, '-q')).toMatchObject({ status: 0 });
    process.env.LOOKING = '1';
    const [first] = (await views.flows()).flows;
    const view = (await views.flow(first!.id))!;
    delete process.env.LOOKING;
    expect(view.nodes).toMatchObject([
      { id: 'a', state: 'done', work: 'a function' },
      { id: 'b', state: 'done', layer: 1 },
    ]);
    expect(view.edges).toEqual([0, 1]);
  });

  it('say why there is no graph', async () => {
    journal = await openJournal(store.url);
    await journal.begin(info('empty', 1), '');
    await journal.begin(info('broken', 1), '{');
    await journal.begin(info('huge', 1_000_000), '');
    const problems = await Promise.all(['empty', 'broken', 'huge'].map(async (id) => (await views.flow(id))?.problem));
    expect(problems).toEqual([
      expect.stringContaining('not in this store'),
      expect.stringContaining('cannot be read'),
      expect.stringContaining('too large'),
    ]);
  });

  it('collapse ten thousand nodes into groups, and show those that failed or run on their own', async () => {
    journal = await openJournal(store.url);
    const nodes: Record<string, object> = {};
    for (let i = 0; i < 10_000; i++)
      nodes[`load-${i}`] = { run: `load ${i}`, ...(i >= 1_000 ? { needs: { [`load-${i - 1_000}`]: 'success' } } : {}) };
    await journal.begin(info('large', 10_000), definition(nodes));
    await journal.write(
      Array.from({ length: 900 }, (_, i) => end(`load-${i}`, { start: 1_000 + i, state: i === 7 ? 'failed' : 'done' })),
    );
    await journal.hold(() => ({ counts: { running: 1 }, running: [{ id: 'load-950', start: 9, attempt: 2 }] }));
    const view = (await views.flow('large'))!;
    expect(view.nodes.length).toBeLessThan(450);
    expect(view.nodes.reduce((sum, { size }) => sum + (size ?? 1), 0)).toBe(10_000);
    expect(view.nodes.find(({ id }) => id === 'load-7')).toMatchObject({ state: 'failed', layer: 0 });
    expect(view.nodes.find(({ id }) => id === 'load-950')).toMatchObject({ state: 'running', start: 9, attempts: 2 });
    expect(view.nodes[0]).toMatchObject({ id: 'load-*', size: 998, counts: { done: 899, ready: 99 }, start: 1_000 });
    expect(view.flow.counts).toEqual({ done: 899, failed: 1, running: 1, ready: 998, skipped: 9, blocked: 8_092 });
    for (let e = 0; e < view.edges.length; e += 2)
      expect(view.nodes[view.edges[e]!]!.layer).toBeLessThan(view.nodes[view.edges[e + 1]!]!.layer);
    await journal.write([end('load-950')]);
    const next = (await views.flow('large'))!;
    expect(next.flow.counts).toMatchObject({ done: 900 });
    expect(stateOf(next, 'load-950')).toBeUndefined();
    await journal.finish('interrupted', {});
  });

  it('collapse a chain of thousands of layers', async () => {
    journal = await openJournal(store.url);
    const nodes: Record<string, object> = {};
    for (let i = 0; i < 5_000; i++)
      nodes[`n${i}`] = { run: 'x', ...(i ? { needs: { [`n${i - 1}`]: 'success' } } : {}) };
    await journal.begin(info('chain', 5_000), definition(nodes));
    const view = (await views.flow('chain'))!;
    expect(view.nodes.length).toBeLessThanOrEqual(400);
    expect(view.edges.length).toBe((view.nodes.length - 1) * 2);
    await journal.finish('interrupted', {});
  });

  it('list the newest two hundred', async () => {
    journal = await openJournal(store.url);
    for (let i = 0; i < 210; i++) await journal.begin({ ...info(`many-${i}`, 1), created: Date.now() + 1_000 + i }, '');
    const { flows, more } = await views.flows();
    expect([flows.length, more, flows[0]!.id]).toEqual([200, true, 'many-209']);
  });
});

describe('flows of other stores', () => {
  it.each(['sqlite::memory:', 'grpc://localhost:1'])('are none behind %s', async (url) => {
    const views = flowViews(url);
    expect((await views.flows()).flows).toEqual([]);
    await views.close();
  });

  it('can be read from a file of an earlier version, whose runners reported nothing', async () => {
    const store = await freshSqlite();
    const file = store.url.slice('sqlite:'.length);
    await (await openJournal(store.url)).close();
    const db = openDatabase(file);
    db.exec('ALTER TABLE flows DROP COLUMN counts; ALTER TABLE flows DROP COLUMN running');
    db.exec(`INSERT INTO flows (id, state, info, definition) VALUES ('old', 'failed',
      '${JSON.stringify({ ...info('old', 1), counts: { done: 0, failed: 1, cached: 0 } })}', '{"nodes":{"a":{"run":"x"}}}')`);
    db.exec(`INSERT INTO flow_ends (flow, body) VALUES (1, '[["a",0,1,5,0.25,3,null,"why"]]')`);
    db.close();
    const views = flowViews(store.url);
    expect((await views.flows()).flows).toMatchObject([{ id: 'old', state: 'failed', counts: { failed: 1 } }]);
    expect((await views.flow('old'))!.nodes).toMatchObject([{ id: 'a', state: 'failed', error: 'why' }]);
    await views.close();
    await store.stop();
  });
});
