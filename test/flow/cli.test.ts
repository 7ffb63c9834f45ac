import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { groupLives } from '../../dist/process/process-group.js';
import { until } from '../support/wait.js';
import { gone, logging, type Place, place } from './support.js';

const jsonLines = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const leftovers = (here: Place) => here.names.filter((name) => name === '.crore');

/** Aliases in ten levels, each nine times as large as the one below. */
function bomb(): string {
  const levels = Array.from({ length: 9 }, (_x, i) => `x${i + 1}: &x${i + 1} [${`*x${i},`.repeat(9)}]`);
  return ['x0: &x0 [lol]', ...levels, 'nodes: { a: { run: "true", needs: *x9 } }', ''].join('\n');
}

describe('crore run', () => {
  it('runs a graph of commands and leaves no files behind', () => {
    const here = place();
    here.write(
      'f.yaml',
      'nodes:\n  a: { run: "echo hi; echo there >&2" }\n  b: { run: [sh, -c, "echo \\"$CRORE_RESULT_a from $CRORE_NODE\\""], needs: [a] }\n',
    );
    const { status, stdout, stderr } = here.crore('run', 'f.yaml', '-j', '2');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('a | hi\na | there\ndone    a');
    expect(stdout).toContain('b | hi from b\n');
    expect(stdout).toMatch(/2 of 2 done in \d+\.\d s\n$/);
    expect(leftovers(here)).toEqual([]);
  });

  it('succeeds with an empty graph, exits 2 on bad input, exits 100 on failure and keeps the state', () => {
    const here = place();
    here.write('empty.yaml', 'nodes: {}\n');
    expect(here.crore('run', 'empty.yaml').status).toBe(0);
    here.write('cycle.yaml', 'nodes:\n  a: { run: touch x, needs: [b] }\n  b: { run: touch x, needs: [a] }\n');
    for (const args of [
      ['cycle.yaml'],
      ['nowhere.yaml'],
      [],
      ['empty.yaml', '-j', 'x'],
      ['empty.yaml', '--only', 'zz'],
      ['empty.yaml', '--frob'],
      ['empty.yaml', '--renew', 'x=1'],
      ['empty.yaml', '-j', '0'],
      ['empty.yaml', '--graph', 'x.png'],
      ['empty.yaml', '--trace', '/nowhere/x'],
    ]) {
      const { status, stderr } = here.crore('run', ...args);
      expect({ args, status: status === 1 ? 2 : status, lines: stderr.trim().split('\n').length }).toEqual({
        args,
        status: 2,
        lines: 1,
      });
    }
    expect(here.names).toEqual(['cycle.yaml', 'empty.yaml']);
    here.write('bad.yaml', 'nodes:\n  a: { run: "echo why >&2; exit 7" }\n  b: { run: "true", needs: [a] }\n');
    const { status, stdout, stderr } = here.crore('run', 'bad.yaml');
    expect(status).toBe(100);
    expect(stdout).toContain('failed  a');
    expect(stdout).toContain(': why');
    expect(stdout).toContain('0 of 2 done, 1 failed, 1 skipped');
    expect(stderr).toContain('--resume');
    expect(leftovers(here)).toEqual(['.crore']);
  });

  it('reports as JSON, as a job log, as a trace and as diagrams', () => {
    const here = place();
    here.write(
      'f.yaml',
      'name: shown\nnodes:\n  a: { run: echo 5 }\n  "b<&>": { run: "exit 3", needs: [a], retries: 1, backoff: 1ms }\n  c: { run: "true", needs: { "b<&>": finished } }\n  d: { run: "true", needs: ["b<&>"] }\n',
    );
    const { status, stdout } = here.crore(
      'run',
      'f.yaml',
      '--json',
      '-k',
      '--joblog',
      'log.tsv',
      '--trace',
      'trace.json',
      '--graph',
      'g.svg',
    );
    expect(status).toBe(100);
    const events = jsonLines(stdout);
    expect(events.map(({ id, state, exit, attempts }) => [id, state, exit, attempts]).slice(0, -1)).toEqual([
      ['a', 'done', 0, 1],
      ['b<&>', 'retry', 3, 1],
      ['b<&>', 'failed', 3, 2],
      ['d', 'skipped', undefined, 0],
      ['c', 'done', 0, 1],
    ]);
    expect(events[0]).toMatchObject({ value: 5, start: expect.stringMatching(/^\d{4}-/), seconds: expect.any(Number) });
    expect(events.at(-1)).toMatchObject({ flow: 'shown', done: 2, failed: 1, skipped: 1, exit: 100 });
    const rows = here.lines('log.tsv').map((line) => line.split('\t'));
    expect(rows[0]).toEqual(['id', 'state', 'attempts', 'start', 'seconds', 'exit']);
    expect(rows.slice(1).map(([id, state]) => `${id} ${state}`)).toEqual([
      'a done',
      'b<&> failed',
      'd skipped',
      'c done',
    ]);
    const trace = JSON.parse(here.read('trace.json')) as { name: string; ph: string; dur: number }[];
    expect(trace.filter(({ ph }) => ph === 'X').map(({ name }) => name)).toEqual(['a', 'b<&>', 'c']);
    const svg = here.read('g.svg');
    expect(svg).toContain('<title>b&#60;&#38;&#62;: failed</title>');
    for (const [state, count] of [
      ['done', 2],
      ['failed', 1],
      ['skipped', 1],
    ])
      expect(svg.split(`<g class="${state}">`)).toHaveLength(Number(count) + 1);
    expect(svg.match(/<path d="M/g)).toHaveLength(4); // three edges and the arrowhead
    expect(svg).toContain('stroke-dasharray');
    here.crore('run', 'f.yaml', '-q', '-k', '--graph', 'g.mmd');
    expect(here.read('g.mmd')).toMatch(
      /^flowchart LR\n {2}n0\["a"\]:::done\n {2}n1\["b#60;#38;#62;"\]:::failed\n[\s\S]*n0 --> n1\n {2}n1 -.-> n2\n {2}n1 --> n3/,
    );
    here.crore('run', 'f.yaml', '-q', '-k', '--graph', 'g.dot');
    expect(here.read('g.dot')).toMatch(
      /^digraph "shown" \{[\s\S]*n0 -> n1;\n {2}n1 -> n2 \[style=dashed\];[\s\S]*\}\n$/,
    );
  });

  it('shows what would run, and runs only the requested nodes', () => {
    const here = place();
    here.write('f.json', logging({ a: [], b: ['a'], c: ['a'], d: ['b', 'c'], x: [] }));
    const { stdout, status } = here.crore('run', 'f.json', '--dry-run');
    expect(status).toBe(0);
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/\s+/).slice(0, 2).join(' ')),
    ).toEqual(['1 a', '1 x', '2 b', '2 c', '3 d']);
    expect(here.names).toEqual(['f.json']);
    const only = here.crore('run', 'f.json', '--only', 'b');
    expect(only.stdout).toContain('2 of 2 done');
    expect(here.lines('log')).toEqual(['a', 'b']);
  });

  it('reads a flow from two tables', () => {
    const here = place();
    here.write('w.csv', 'id,command\nb,echo b >> log\na,echo a >> log\n');
    here.write('s.csv', 'from,to\na,b\n');
    expect(here.crore('run', '--workload', 'w.csv', '--schedule', 's.csv').status).toBe(0);
    expect(here.lines('log')).toEqual(['a', 'b']);
  });

  it('runs commands with odd names, quotes, long output, syntax errors, and one that kills its shell', () => {
    const here = place();
    const nodes = {
      'it\'s "odd" $HOME': { run: "echo 'it'\"'\"'s' \"$CRORE_NODE\"" },
      long: {
        run: 'i=0; while [ $i -lt 3000 ]; do echo "line $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; i=$((i+1)); done; echo last',
      },
      broken: { run: 'if ( then "' },
      killer: { run: 'kill -9 $$' },
      stdin: { run: 'cat; echo done' },
      multi: { run: 'echo one\necho two\nexit 4' },
      missing: { run: ['no-such-program', '$HOME'] },
      nodir: { run: 'true', cwd: 'nowhere' },
      after: { run: 'echo fine', needs: { killer: 'finished', broken: 'finished' } },
    };
    here.write('f.json', { nodes });
    const { stdout, status } = here.crore('run', 'f.json', '--json', '-k', '-j', '1');
    expect(status).toBe(100);
    const ends = new Map(jsonLines(stdout).map((event) => [event.id, event]));
    expect(ends.get('it\'s "odd" $HOME')).toMatchObject({ state: 'done', value: 'it\'s it\'s "odd" $HOME' });
    expect(ends.get('long')).toMatchObject({ state: 'done', value: 'last' });
    expect(ends.get('broken')).toMatchObject({ state: 'failed', exit: 2 });
    expect(ends.get('killer')).toMatchObject({ state: 'failed', exit: 137 });
    expect(ends.get('stdin')).toMatchObject({ state: 'done', value: 'done' });
    expect(ends.get('multi')).toMatchObject({ state: 'failed', exit: 4 });
    expect(ends.get('missing')).toMatchObject({ state: 'failed', exit: 127 });
    expect(ends.get('nodir')).toMatchObject({ state: 'failed' });
    expect(ends.get('after')).toMatchObject({ state: 'done' });
  });

  it('stops the commands on an interrupt, keeps the state, and can be resumed', async () => {
    const here = place();
    const nodes = {
      a: { run: 'echo a >> log' },
      b: { run: 'echo b >> log; echo $$ > pid; test -e go || sleep 600', needs: ['a'] },
      c: { run: 'echo c >> log', needs: ['b'] },
    };
    here.write('f.json', { nodes });
    const running = here.start('run', 'f.json');
    const pid = Number(await until('the second command to run', () => here.read('pid').trim()));
    running.child.kill('SIGINT');
    expect(await running.exit()).toBe(130);
    await gone([pid]);
    here.write('go', '');
    const { status, stdout } = here.crore('run', 'f.json', '--resume');
    expect(status).toBe(0);
    expect(stdout).toContain('1 of 3 nodes were already done');
    expect(here.lines('log')).toEqual(['a', 'b', 'b', 'c']);
    expect(leftovers(here)).toEqual([]);
  });

  it('leaves no process behind when killed with SIGKILL, and reruns only the nodes in flight', async () => {
    const here = place();
    const nodes: Record<string, object> = {
      one: { run: 'echo one >> log' },
      hang: {
        run: 'echo hang >> log; (sleep 600 & echo $! > grandchild; wait) & echo $$ > pid; test -e go || sleep 601',
        needs: ['one'],
      },
      last: { run: 'echo last >> log', needs: ['hang'] },
    };
    for (let i = 0; i < 20; i++) nodes[`side${i}`] = { run: `echo side${i} >> log`, needs: ['one'] };
    here.write('f.json', { nodes });
    const running = here.start('run', 'f.json', '-j', '3', '--json');
    await until(
      'all other nodes to be done',
      () => running.stdout.split('\n').filter((line) => line.includes('"done"')).length === 21,
    );
    const pids = [
      Number(here.read('pid')),
      Number(await until('the grandchild to start', () => here.read('grandchild').trim())),
    ];
    await running.kill('SIGKILL');
    await gone(pids);
    here.write('go', '');
    const { status } = here.crore('run', 'f.json', '--resume');
    expect(status).toBe(0);
    const log = here.lines('log');
    expect(log.filter((line) => line === 'hang')).toHaveLength(2);
    expect(log.filter((line) => line === 'last')).toHaveLength(1);
    expect(log).toHaveLength(24);
    expect(leftovers(here)).toEqual([]);
  });

  it('runs nothing when a finished flow is resumed, with or without a store', () => {
    const here = place();
    for (const store of [[], ['--store', 'sqlite:flows.db']]) {
      here.write('f.json', { nodes: { a: { run: 'echo a >> log' }, b: { run: 'echo b >> log', needs: ['a'] } } });
      here.write('log', '');
      expect(here.crore('run', 'f.json', '--resume', ...store).status).toBe(0);
      expect(here.lines('log')).toEqual(['a', 'b']);
      const again = here.crore('run', 'f.json', '--resume', ...store);
      expect(again.status).toBe(0);
      expect(again.stdout + again.stderr).toMatch(/is done|2 of 2 nodes were already done/);
      expect(here.lines('log')).toEqual(['a', 'b']);
      expect(here.crore('run', 'f.json', ...store).status).toBe(0);
      expect(here.lines('log')).toEqual(['a', 'b', 'a', 'b']);
    }
    expect(leftovers(here)).toEqual([]);
  });

  it.each([
    ['aliases that multiply', 'f.yaml', bomb()],
    ['YAML that is nested too deeply', 'f.yaml', `nodes: ${'['.repeat(20_000)}${']'.repeat(20_000)}\n`],
    ['JSON that is nested too deeply', 'f.json', `{"nodes":{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}}`],
  ])('refuses %s in one line', (_what, name, text) => {
    const here = place();
    here.write(name, text);
    const { status, stderr } = here.crore('run', name);
    expect({ status, lines: stderr.trim().split('\n').length }).toEqual({ status: 2, lines: 1 });
    expect(stderr).toContain(name);
  });

  it('refuses to run a flow that another runner is running', async () => {
    const here = place();
    here.write('f.json', { nodes: { a: { run: 'touch up; while ! test -e go; do sleep 0.05; done' } } });
    const running = here.start('run', 'f.json');
    await until('the flow to run', () => existsSync(join(here.dir, 'up')));
    const { status, stderr } = here.crore('run', 'f.json', '--resume');
    expect({ status, stderr }).toEqual({
      status: 69,
      stderr: expect.stringContaining(`being run by process ${running.child.pid}`),
    });
    here.write('go', '');
    expect(await running.exit()).toBe(0);
  });
});

describe('module functions', () => {
  const MODULE = `
import { appendFileSync } from 'node:fs';
import { flow, map, node, sh } from '${new URL('../../dist/flow/index.js', import.meta.url).href}';
const list = node(() => ({ pid: process.pid, items: [1, 2, 3, 4] }));
const items = node({ needs: { list } }, ({ list }) => list.items);
const squares = map(items, (item) => ({ pid: process.pid, square: item * item }));
const poison = node({ retries: 0 }, () => { appendFileSync('poison', 'x'); process.abort(); });
const slow = node({ timeout: 50 }, () => { for (;;); });
const total = node({ needs: { squares } }, ({ squares }) => squares.reduce((sum, { square }) => sum + square, 0));
const shown = sh('echo "total $CRORE_RESULT_total"', { needs: { total } });
`;

  it('run in separate processes, so a crash or an endless loop stays isolated', () => {
    const here = place();
    here.write('f.mjs', `${MODULE}export default flow({ list, items, squares, total, shown, poison, slow });`);
    const { status, stdout } = here.crore('run', 'f.mjs', '-j', '3', '-k', '--json');
    expect(status).toBe(100);
    const ends = new Map(jsonLines(stdout).map((event) => [event.id, event]));
    expect(ends.get('total')).toMatchObject({ state: 'done', value: 30 });
    expect(ends.get('shown')).toMatchObject({ value: 'total 30' });
    expect(ends.get('poison')).toMatchObject({ state: 'failed', error: expect.stringContaining('died') });
    expect(here.read('poison')).toBe('xxx'); // given up after three workers
    expect(ends.get('slow')).toMatchObject({ state: 'failed', error: expect.stringContaining('longer than') });
  });

  it('move to a new process after --renew tasks; a module that cannot be loaded is named', () => {
    const here = place();
    here.write('f.mjs', `${MODULE}export default flow({ list, items, squares });`);
    const pids = (...args: string[]) => {
      const { stdout, status } = here.crore('run', 'f.mjs', '-j', '1', '--json', ...args);
      expect(status).toBe(0);
      const squares = jsonLines(stdout).find(({ id }) => id === 'squares')!.value as { pid: number }[];
      return new Set(squares.map(({ pid }) => pid)).size;
    };
    expect(pids()).toBe(1);
    expect(pids('--renew', 'tasks=1')).toBe(4);
    for (const [name, text, word] of [
      ['throws.mjs', 'throw new Error("at load")', 'at load'],
      ['none.mjs', 'export default 5', 'created with flow'],
      ['syntax.mjs', 'export default {', 'cannot be loaded'],
    ] as const) {
      here.write(name, text);
      const { status, stderr } = here.crore('run', name);
      expect({ name, status, named: stderr.includes(word) }).toEqual({ name, status: 2, named: true });
    }
  });

  it('can throw library errors that the command recognizes across copies of the library', () => {
    const here = place();
    const dist = new URL('../../dist/', import.meta.url).href;
    const imports = `import { flow, node } from '${dist}flow/index.js'; import { Fatal } from '${dist}index.js';`;
    here.write(
      'cycle.mjs',
      `${imports} export default flow({ a: node({ needs: ['b'] }, () => 1), b: node({ needs: ['a'] }, () => 1) });`,
    );
    const { status, stderr } = here.crore('run', 'cycle.mjs');
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: "crore: cycle.mjs, node 'a': dependency cycle: a -> b -> a\n",
    });
    here.write(
      'fatal.mjs',
      `${imports} export default flow({ a: node({ retries: 3 }, () => { throw new Fatal('never'); }) });`,
    );
    const { stdout } = here.crore('run', 'fatal.mjs', '--inline', '--json');
    expect(jsonLines(stdout)[0]).toMatchObject({ id: 'a', state: 'failed', attempts: 1 });
  });

  it('can be written in TypeScript', () => {
    const here = place();
    here.write(
      'f.ts',
      `import { flow, node } from '${new URL('../../dist/flow/index.js', import.meta.url).href}';
const a = node((): number => 41);
export default flow({ a, b: node({ needs: { a } }, ({ a }: { a: number }): number => a + 1) });`,
    );
    const { stdout, stderr, status } = here.crore('run', 'f.ts', '--json');
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(jsonLines(stdout).find(({ id }) => id === 'b')!.value).toBe(42);
    here.write('f.ts', "import './nowhere.js';");
    expect(here.crore('run', 'f.ts').stderr).toMatch(/^crore: f\.ts: cannot be loaded: .*nowhere/);
    expect(here.names).toEqual(['f.ts']);
  });

  it('explain what is missing when Node does not support TypeScript', () => {
    if ((process.features as { typescript?: unknown }).typescript) return; // this Node does
    const here = place();
    here.write('f.ts', 'export default 5 as number;');
    // A package that does not have esbuild installed.
    const dist = fileURLToPath(new URL('../../dist/', import.meta.url));
    for (const name of ['crore.cjs', 'run.bundle.js']) cpSync(join(dist, name), join(here.dir, name));
    const { status, stderr } = spawnSync(process.execPath, ['crore.cjs', 'run', 'f.ts'], {
      cwd: here.dir,
      encoding: 'utf8',
    });
    expect(status).toBe(2);
    expect(stderr).toMatch(
      /f\.ts: Node [\d.]+ cannot read TypeScript: use Node 22.18 or newer, install esbuild, or compile it/,
    );
  });
});

describe('cleanup after a flow', () => {
  it('ends an unresponsive function and its child processes when the runner is killed', async () => {
    const here = place();
    here.write(
      'f.mjs',
      `import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { flow, node } from '${new URL('../../dist/flow/index.js', import.meta.url).href}';
export default flow({ a: node(() => {
  const { pid } = spawn('sleep', ['60']);
  writeFileSync('pids', process.pid + ' ' + pid + '\\n');
  for (;;);
}) });`,
    );
    const running = here.start('run', 'f.mjs', '-q');
    await until('the function to run', () => here.read('pids').endsWith('\n'));
    await running.kill('SIGKILL');
    await gone(here.read('pids').split(' ').map(Number));
  });

  it('is not prevented by a reader that closes the pipe: the flow runs to its end', async () => {
    const here = place();
    here.write('f.json', { nodes: { a: { run: 'echo 1' }, b: { run: 'sleep 0.2; echo b >> log', needs: ['a'] } } });
    const running = here.start('run', 'f.json');
    running.child.stdout!.once('data', () => running.child.stdout!.destroy());
    expect({ code: await running.exit(), err: running.stderr }).toEqual({ code: 0, err: '' });
    expect(here.names).toEqual(['f.json', 'log']);
  });

  it('does not confuse the state of flows with similar file names', () => {
    const here = place();
    here.write('f.json', { nodes: { a: { run: 'true' } } });
    here.write('f.json.run1.json', { nodes: { a: { run: 'false' } } });
    expect(here.crore('run', 'f.json.run1.json', '-q').status).toBe(100);
    expect(here.crore('run', 'f.json', '-q').status).toBe(0);
    expect(readdirSync(join(here.dir, '.crore'))).toEqual(['f.json.run1.json.run1']);
  });

  it('leaves no state when the flow to resume does not exist, and reports a plausible duration', () => {
    const here = place();
    here.write('f.json', { nodes: {} });
    expect(here.crore('run', 'f.json', '--resume', 'nope')).toMatchObject({ status: 1, stdout: '' });
    expect(here.names).toEqual(['f.json']);
    expect(here.crore('run', 'f.json').stdout).toMatch(/^0 of 0 done in \d+\.\d s\n$/);
  });

  it('does not wait for a process group that consists of a zombie', async () => {
    // The child of `sleep` ends in its own group, and sleep never reaps it. A shell would, so it ends after the exec.
    const child = `setsid sh -c 'until grep -q sleep /proc/$PPID/comm; do :; done'`;
    const parent = spawn('sh', ['-c', `${child} & echo $!; exec sleep 60`], { stdio: ['ignore', 'pipe', 'ignore'] });
    try {
      const group = Number(String((await once(parent.stdout, 'data'))[0]));
      await until('the group to contain only a zombie', () =>
        /\) Z /.test(readFileSync(`/proc/${group}/stat`, 'latin1')),
      );
      expect(() => process.kill(-group, 0)).not.toThrow();
      expect([groupLives(group), groupLives(2 ** 30)]).toEqual([false, false]);
      const alive = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
      expect(groupLives(alive.pid!)).toBe(true);
      alive.kill('SIGKILL');
    } finally {
      parent.kill('SIGKILL');
    }
  });
});

describe('the flow cache', () => {
  it('reruns only what has changed, and explains why', () => {
    const here = place();
    here.write('in.txt', 'one');
    here.write(
      'flow.yaml',
      `nodes:
  make: { run: "echo make >> log; tr a-z A-Z < in.txt > out.txt", inputs: [in.txt], outputs: [out.txt] }
  count: { run: "echo count >> log; wc -c < out.txt", needs: [make], inputs: [out.txt], cache: true }
  always: { run: "echo always >> log", needs: [count] }
`,
    );
    const why = (node: string) => here.crore('why', node).stdout.trim();
    const ran = () => {
      const before = here.lines('log').length;
      expect(here.crore('run', 'flow.yaml').status).toBe(0);
      return here.lines('log').slice(before);
    };
    expect(why('make')).toBe('make would run: it has never completed');
    expect(here.names).toEqual(['flow.yaml', 'in.txt']);
    expect(ran()).toEqual(['make', 'count', 'always']);
    expect(why('count')).toMatch(/^count would not run: nothing has changed since/);
    expect(why('always')).toBe('always would run: it is not cached: it runs every time');
    expect(ran()).toEqual(['always']);
    expect(here.crore('run', 'flow.yaml', '-n').stdout).toMatch(
      /make .*\(cached\)\n.*count .*\(cached\)\n.*always [^(]*\n/,
    );
    here.write('in.txt', 'two');
    expect(why('make')).toBe('make would run: its input in.txt has changed');
    expect(why('count')).toBe("count would run: 'make', which it needs, would run");
    expect(ran()).toEqual(['make', 'count', 'always']);
    here.write('in.txt', 'TWO'); // produces the same output, so downstream nodes need not run
    expect(ran()).toEqual(['make', 'always']);
    here.write('out.txt', 'meddled');
    expect(why('make')).toContain('changed by something else');
    expect(ran()).toEqual(['make', 'always']);
    here.write('flow.yaml', readFileSync(join(here.dir, 'flow.yaml'), 'utf8').replace('wc -c', 'wc -l'));
    expect(why('count')).toBe('count would run: its command has changed');
    expect(ran()).toEqual(['count', 'always']);
    expect(here.crore('run', 'flow.yaml', '--force').stdout).toContain('done    make');
  });

  it('applies to map nodes and to each of their parts', () => {
    const here = place();
    const write = (count: string) =>
      here.write(
        'flow.yaml',
        `cache: true
nodes:
  list: { run: "cat list.json", inputs: [list.json] }
  each: { run: "echo each $CRORE_ITEM >> log; ${count} $CRORE_ITEM", map: list, inputs: [factor] }
  sum: { run: "echo sum >> log; echo $CRORE_RESULT_each", needs: [each] }
`,
      );
    const run = (...args: string[]) => {
      const before = here.lines('log').length;
      const { status, stdout } = here.crore('run', 'flow.yaml', '-j', '1', ...args);
      return { status, ran: here.lines('log').slice(before), last: stdout.trim().split('\n').at(-1) };
    };
    const ran = (...args: string[]) => run(...args).ran;
    write('echo');
    here.write('factor', '1');
    here.write('list.json', '["a","b","c"]');
    const everything = ['each a', 'each b', 'each c', 'sum'];
    expect(ran()).toEqual(everything);
    expect(run()).toMatchObject({ ran: [], last: expect.stringContaining('3 of 3 done, 3 cached') });
    expect(here.crore('why', 'each').stdout).toMatch(/^each would not run: nothing has changed since/);
    expect(ran('--force')).toEqual(everything);
    expect(ran()).toEqual([]);
    here.write('list.json', '["a","B","c","d"]');
    expect(here.crore('why', 'each').stdout.trim()).toBe("each would run: 'list', which it needs, would run");
    expect(ran()).toEqual(['each B', 'each d', 'sum']);
    here.write('list.json', '["a","B"]');
    expect(ran()).toEqual(['sum']);
    here.write('factor', '2');
    expect(ran()).toEqual(['each a', 'each B']); // which return the same results as before
    write('printf %s');
    expect(ran()).toEqual(['each a', 'each B']);
    // Only the failed part and those not yet run remain.
    here.write('list.json', '["a","x","y"]');
    write('test x !=');
    expect(run()).toMatchObject({ status: 100, ran: ['each a', 'each x'] });
    here.write('list.json', '["a","z","y"]');
    expect(run()).toMatchObject({ status: 0, ran: ['each z', 'each y', 'sum'] });
    // Without results and outputs, it is unknown what a part produced.
    here.write('list.json', '["a","z","z"]');
    expect(ran()).toEqual(['each z', 'sum']);
    expect(ran()).toEqual([]);
  });

  it('distinguishes the functions of a module, including mapped and renamed ones', () => {
    const here = place();
    const write = (factor: number) =>
      here.write(
        'f.mjs',
        `import { flow, map, node } from '${new URL('../../dist/flow/index.js', import.meta.url).href}';
const list = node(() => [1, 2]);
const each = map(list, (item) => item * ${factor});
export default flow({ list, each, sum: node({ needs: { all: each } }, ({ all }) => all[0] + ${factor}) }, { cache: true });`,
      );
    const values = () =>
      Object.fromEntries(
        jsonLines(here.crore('run', 'f.mjs', '--inline', '--json').stdout)
          .filter(({ id, cached }) => cached !== true && !String(id).includes('['))
          .map(({ id, value }) => [id, value]),
      );
    write(10);
    expect(values()).toEqual({ list: [1, 2], each: [10, 20], sum: 20 });
    expect(values()).toEqual({});
    write(100);
    expect(values()).toEqual({ each: [100, 200], sum: 200 });
  });

  it('reports a node that does not exist', () => {
    const here = place();
    here.write('flow.yaml', 'nodes: { a: { run: x } }');
    expect(
      JSON.parse(here.crore('why', 'nope', 'flow.yaml', '--json').stderr.includes("no node 'nope'") ? '1' : '0'),
    ).toBe(1);
  });
});
