// npm run bench:flows -- [--quick]: flows of ours beside make, ninja and snakemake, in one run. Read the ratios.
import { spawnSync } from 'node:child_process';
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { needsOf, SHAPES } from './shapes.mjs';

const quick = process.argv.includes('--quick');
const rounds = quick ? 1 : 3;
const dir = mkdtempSync(join(tmpdir(), 'crore-bench-flows-'));
const crore = fileURLToPath(new URL('../../bin/crore', import.meta.url));
const turn = fileURLToPath(new URL('./nodes.mjs', import.meta.url));
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const row = (...cells) => console.log(`| ${cells.join(' | ')} |`);

function head(title, ...cells) {
  console.log(`\n## ${title}\n`);
  row(...cells);
  row(...cells.map(() => '---'));
}

function nodes(shape, n, store) {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--max-old-space-size=1900', turn, shape, n, store], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** Appends of one page, each with its fdatasync: what a chain of durable commits cannot beat. */
function fdatasyncRate() {
  const file = openSync(join(dir, 'sync'), 'w');
  const page = Buffer.alloc(4_096, 1);
  const begin = performance.now();
  let count = 0;
  for (; performance.now() - begin < 1_000; count++) {
    writeSync(file, page);
    fdatasyncSync(file);
  }
  closeSync(file);
  return count / ((performance.now() - begin) / 1_000);
}

function inMemory() {
  head('functions that do nothing, no store: CPU a node', 'shape', 'nodes', 'µs of CPU', 'nodes a second', 'peak MB');
  for (const shape of Object.keys(SHAPES)) {
    for (const n of quick ? [10_000, 100_000] : [100, 10_000, 100_000, 1_000_000]) {
      const { cpu, ms, rss } = nodes(shape, n, '');
      row(shape, n, cpu.toFixed(2), Math.round((n / ms) * 1_000), Math.round(rss));
    }
  }
}

function durable() {
  head('the same, durable on SQLite (FULL)', 'shape', 'nodes', 'nodes a second', 'fdatasyncs a second', 'ratio');
  for (const [shape, n] of [
    ['chain', quick ? 1_000 : 5_000],
    ['fan', 50_000],
    ['layered', 50_000],
  ]) {
    const figures = Array.from({ length: rounds }, () => {
      const before = fdatasyncRate();
      const { ms } = nodes(shape, n, `sqlite:${join(dir, `${Math.random()}.db`)}`);
      const rate = (n / ms) * 1_000;
      return { rate, sync: (before + fdatasyncRate()) / 2 };
    });
    const rate = median(figures.map((one) => one.rate));
    const sync = median(figures.map((one) => one.sync));
    row(shape, n, Math.round(rate), Math.round(sync), (rate / sync).toFixed(2));
  }
}

const RUNNERS = {
  crore: { file: 'flow.json', run: (j) => [process.execPath, [crore, 'run', 'flow.json', '-j', j, '-q']] },
  make: { file: 'Makefile', run: (j) => ['make', ['-s', `-j${j}`]] },
  ninja: { file: 'build.ninja', run: (j) => ['ninja', ['--quiet', `-j${j}`]] },
  snakemake: { file: 'Snakefile', run: (j) => ['snakemake', ['-q', 'all', '--nolock', '-F', '-j', j]], most: 200 },
};

function writeAll(n, needs, command) {
  writeFileSync(
    join(dir, 'flow.json'),
    JSON.stringify({ nodes: Object.fromEntries(needs.map((up, i) => [`n${i}`, { run: command, needs: up }])) }),
  );
  const all = needs.map((_, i) => `n${i}`).join(' ');
  writeFileSync(
    join(dir, 'Makefile'),
    `.PHONY: all ${all}\nall: ${all}\n${needs.map((up, i) => `n${i}: ${up.join(' ')}\n\t@${command}\n`).join('')}`,
  );
  writeFileSync(
    join(dir, 'build.ninja'),
    `rule r\n  command = ${command}\n${needs.map((up, i) => `build n${i}: r ${up.join(' ')}\n`).join('')}`,
  );
  const rule = (up, i) =>
    `rule n${i}:\n  input: ${up.map((one) => `"${one}.out"`).join(', ')}\n  output: touch("n${i}.out")\n  shell: "${command}"\n`;
  writeFileSync(
    join(dir, 'Snakefile'),
    `rule all:\n  input: expand("n{i}.out", i=range(${n}))\n${needs.map(rule).join('')}`,
  );
}

function timed(name, j) {
  const [command, args] = RUNNERS[name].run(String(j));
  const begin = performance.now();
  const { status, error, stderr } = spawnSync(command, args, { cwd: dir, encoding: 'utf8' });
  if (error) return undefined;
  if (status !== 0) throw new Error(`${name}: ${stderr.slice(-300)}`);
  return performance.now() - begin;
}

function commands() {
  const sizes = quick ? [1_000] : [100, 4_000];
  head(
    '`true` as a command, -j 2, ms a node (all told, start-up too)',
    'shape',
    'nodes',
    ...Object.keys(RUNNERS),
    'ours / make',
    'ours / ninja',
  );
  for (const shape of ['fan', 'layered', 'chain']) {
    for (const n of sizes) {
      writeAll(n, needsOf(n, SHAPES[shape](n)), 'true');
      const figures = Object.fromEntries(Object.keys(RUNNERS).map((name) => [name, []]));
      for (let round = 0; round < rounds; round++) {
        for (const name of Object.keys(RUNNERS)) {
          if (n > (RUNNERS[name].most ?? n)) continue;
          const ms = timed(name, 2);
          if (ms !== undefined) figures[name].push(ms / n);
        }
      }
      const values = Object.fromEntries(
        Object.entries(figures).map(([name, all]) => [name, all.length ? median(all) : undefined]),
      );
      const ratio = (peer) => (values[peer] === undefined ? '-' : (values.crore / values[peer]).toFixed(2));
      row(shape, n, ...Object.values(values).map((value) => value?.toFixed(3) ?? '-'), ratio('make'), ratio('ninja'));
    }
  }
}

/** One long leaf behind a short node, among many short ones that stand first in the file. */
function skewed() {
  const short = 60;
  const nodes = Object.fromEntries(Array.from({ length: short }, (_, i) => [`s${i}`, { run: 'sleep 0.1' }]));
  Object.assign(nodes, {
    first: { run: 'sleep 0.1' },
    second: { run: 'sleep 0.1', needs: ['first'] },
    long: { run: 'sleep 3', needs: ['second'] },
  });
  writeFileSync(join(dir, 'skewed.json'), JSON.stringify({ nodes }));
  const begin = performance.now();
  spawnSync(process.execPath, [crore, 'run', 'skewed.json', '-j', '4', '-q'], { cwd: dir });
  const seconds = (performance.now() - begin) / 1_000;
  const bound = Math.max(3.2, (short * 0.1 + 3.2) / 4);
  head('one long leaf, -j 4', 'seconds', 'max(critical path, work / N)', 'ratio');
  row(seconds.toFixed(2), bound.toFixed(2), (seconds / bound).toFixed(2));
}

function cached() {
  const n = quick ? 20_000 : 100_000;
  const needs = needsOf(
    n,
    Array.from({ length: n - 1 }, (_, i) => [Math.floor(i / 2), i + 1]),
  );
  writeFileSync(
    join(dir, 'cached.json'),
    JSON.stringify({
      cache: true,
      nodes: Object.fromEntries(needs.map((up, i) => [`n${i}`, { run: ':', needs: up }])),
    }),
  );
  const time = () => {
    const begin = performance.now();
    spawnSync(process.execPath, [crore, 'run', 'cached.json', '-j', '4', '-q'], { cwd: dir });
    return ((performance.now() - begin) / 1_000).toFixed(1);
  };
  head('cached', 'nodes', 'first run, s', 'again, s');
  row(n, time(), time());
}

try {
  inMemory();
  durable();
  commands();
  skewed();
  cached();
} finally {
  rmSync(dir, { recursive: true, force: true });
}
