import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALL_STORES, STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';
import { gone, type Place, place } from './support.js';

const jsonLines = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

/** A wide graph whose commands log their id, and a node that depends on all of them. */
function wide(here: Place, width: number, body = 'true'): void {
  const nodes: Record<string, object> = {};
  for (let i = 0; i < width; i++) nodes[`n${i}`] = { run: `echo n${i} >> log; ${body}` };
  nodes.last = { run: 'echo last >> log', needs: Object.keys(nodes) };
  here.write('f.json', { nodes });
}

describe.each(ALL_STORES)('workers that join a flow on %s', (name, fresh) => {
  /** Tests that depend little on the store. */
  const twice = it.runIf(STORES.some(([one]) => one === name));
  let store: TestStore;
  beforeAll(async () => {
    store = await fresh();
  });
  afterAll(() => store.stop());
  const worker = (here: Place, ...args: string[]) =>
    here.start('worker', '--store', store.url, '--lease', '2s', '--idle', '30s', ...args);

  it('share the nodes, also from two process groups, and end by themselves', async () => {
    const here = place();
    wide(here, 40, 'sleep 0.05');
    const workers = [worker(here, '-j', '2', '--idle', '1s'), worker(here, '-j', '2', '--idle', '1s')];
    const running = here.start('run', 'f.json', '-j', '0', '--store', store.url, '--json');
    expect(await running.exit()).toBe(0);
    const events = jsonLines(running.stdout).filter(({ id }) => id !== undefined);
    const by = new Set(events.map(({ worker: name }) => String(name).split(':').at(-1)));
    expect(by).toEqual(new Set(workers.map(({ child }) => String(child.pid))));
    expect([...here.lines('log')].sort()).toEqual([...new Set(here.lines('log'))].sort());
    expect(here.lines('log').at(-1)).toBe('last');
    for (const one of workers) expect(await one.exit()).toBe(0);
  });

  it('lose nothing when one is killed with SIGKILL: its nodes run elsewhere, its commands end', async () => {
    const here = place();
    here.write('f.json', {
      nodes: {
        a: { run: 'echo a >> log; echo $$ > pid; test -e go || sleep 600' },
        b: { run: 'echo b >> log', needs: ['a'] },
      },
    });
    const victim = worker(here);
    const running = here.start('run', 'f.json', '-j', '0', '--store', store.url);
    const pid = Number(await until('the command to run', () => here.read('pid').trim()));
    here.write('go', '');
    await victim.kill('SIGKILL');
    await gone([pid]);
    const other = worker(here, '--idle', '500ms');
    expect(await running.exit()).toBe(0);
    expect(here.lines('log')).toEqual(['a', 'a', 'b']);
    expect(await other.exit()).toBe(0);
  });

  it('keep the results they finish after the runner is killed with SIGKILL', async () => {
    const here = place();
    here.write('f.json', {
      nodes: {
        a: { run: 'echo a >> log; touch up; while ! test -e go; do sleep 0.05; done' },
        b: { run: 'echo b >> log', needs: ['a'] },
      },
    });
    const helper = worker(here, '--idle', '40s');
    const running = here.start('run', 'f.json', '-j', '0', '--store', store.url);
    await until('the command to run', () => here.names.includes('up'));
    await running.kill('SIGKILL');
    const again = here.start('run', 'f.json', '-j', '0', '--store', store.url, '--resume');
    here.write('go', '');
    expect(await again.exit()).toBe(0);
    expect(here.lines('log')).toEqual(['a', 'b']);
    helper.child.kill('SIGTERM');
    expect(await helper.exit()).toBe(130);
  });

  twice('are launched by the runner, renewed after their share, and end with it', async () => {
    const here = place();
    wide(here, 12);
    const { status, stdout, stderr } = here.crore(
      'run',
      'f.json',
      '-j',
      '2',
      '--store',
      store.url,
      '--launcher',
      'env LAUNCHED=1',
      '--renew',
      'tasks=5',
      '--json',
    );
    expect({ status, stderr }).toMatchObject({ status: 0 });
    const names = jsonLines(stdout).flatMap(({ worker: name }) => (name === undefined ? [] : [String(name)]));
    expect(names).toHaveLength(13);
    expect(new Set(names).size).toBeGreaterThan(1);
    await gone(names.map((name) => Number(name.split(':').at(-1))));
  });

  twice('measure a timeout from the start of the command, not from when it was offered', async () => {
    const here = place();
    const nodes = {
      slow: { run: 'sleep 600', timeout: '300ms' },
      other: { run: 'sleep 0.4; echo ok', timeout: '60s' },
    };
    here.write('f.json', { nodes });
    const helper = worker(here, '-j', '1', '--idle', '500ms');
    const running = here.start('run', 'f.json', '-j', '0', '-k', '--store', store.url, '--json');
    expect(await running.exit()).toBe(100);
    const ends = jsonLines(running.stdout);
    expect(ends.find(({ id }) => id === 'slow')).toMatchObject({ state: 'failed', error: 'it took longer than 0.3 s' });
    expect(ends.find(({ id }) => id === 'other')).toMatchObject({ state: 'done', value: 'ok' });
    expect(await helper.exit()).toBe(0);
  });

  twice('end when the runner that launched them is killed with SIGKILL', async () => {
    const here = place();
    here.write('f.json', { nodes: { a: { run: 'echo $PPID > pid; sleep 600' } } });
    const running = here.start('run', 'f.json', '-j', '1', '--store', store.url, '--launcher', 'env');
    const pid = Number(await until('the command to run', () => here.read('pid').trim()));
    await running.kill('SIGKILL');
    await gone([pid]);
  });

  twice('run the functions of a module', async () => {
    const here = place();
    const library = new URL('../../dist/flow/index.js', import.meta.url).href;
    here.write(
      'f.mjs',
      `import { flow, node } from '${library}';\nconst a = node(() => process.pid);\nexport default flow({ a, b: node({ needs: { a } }, ({ a }) => [a, process.pid]) });`,
    );
    const helper = worker(here, '--idle', '1s');
    const running = here.start('run', 'f.mjs', '-j', '0', '--store', store.url, '--json');
    expect(await running.exit()).toBe(0);
    const { pid } = helper.child;
    expect(jsonLines(running.stdout).find(({ id }) => id === 'b')!.value).toEqual([pid, pid]);
    expect(await helper.exit()).toBe(0);
  });

  it('support listing, showing, drawing, cancelling and retrying flows', async () => {
    const here = place();
    const at = ['--store', store.url];
    here.write(
      'f.yaml',
      'name: listed\nnodes:\n  a: { run: "echo a >> log" }\n  b: { run: "test -e go", needs: [a] }\n  c: { run: "echo c >> log", needs: [b] }\n',
    );
    expect(here.crore('run', 'f.yaml', ...at, '-q').status).toBe(100);
    const listed = jsonLines(here.crore('flow', 'ls', ...at, '--json').stdout).find(({ name }) => name === 'listed')!;
    expect(listed).toMatchObject({ state: 'failed', size: 3, counts: { done: 1, failed: 1, skipped: 1 } });
    const id = String(listed.id);
    expect(here.crore('flow', 'show', id, ...at).stdout).toMatch(/failed[\s\S]*done {4}a[\s\S]*failed {2}b .*exit 1/);
    expect(here.crore('flow', 'graph', id, 'g.mmd', ...at).status).toBe(0);
    expect(here.read('g.mmd')).toContain('n0["a"]:::done\n  n1["b"]:::failed\n  n2["c"]:::skipped');
    here.write('go', '');
    expect(here.crore('flow', 'retry', id, ...at).status).toBe(0);
    expect(here.lines('log')).toEqual(['a', 'c']);
    for (const args of [
      ['show', 'nope'],
      ['retry', id],
      ['cancel', id],
    ]) {
      const { status, stderr } = here.crore('flow', ...args, ...at);
      expect({ args, status, lines: stderr.trim().split('\n').length }).toEqual({ args, status: 1, lines: 1 });
    }
    here.write('hang.yaml', 'name: hanging\nnodes:\n  a: { run: "touch up; sleep 600" }\n');
    const running = here.start('run', 'hang.yaml', ...at);
    await until('the flow to run', () => here.names.includes('up'));
    const hanging = jsonLines(here.crore('flow', 'ls', ...at, '--json').stdout).find(({ name }) => name === 'hanging')!;
    expect(here.crore('flow', 'cancel', String(hanging.id), ...at).status).toBe(0);
    expect(await running.exit()).toBe(130);
  });
});

describe('workers that cannot be started', () => {
  it.each([
    ['a launcher that fails', 'sh -c "echo no route to host >&2; exit 255" #', 'no route to host'],
    ['a launcher that is not there', '/nowhere/launch', 'not found'],
    ['a worker that dies at start', 'env NODE_OPTIONS=--no-such-option', 'no-such-option'],
  ])('%s is reported, and nothing hangs', (_what, launcher, words) => {
    const here = place();
    wide(here, 3);
    const { status, stdout, stderr } = here.crore('run', 'f.json', '-j', '2', '--launcher', launcher);
    expect(status).toBe(69);
    expect(stderr).toContain('launcher');
    expect(`${stdout}${stderr}`).toContain(words);
    expect(here.names).toEqual(['f.json']); // nothing ran, and no state is left
  });
});
