// npm run bench -- flows [--quick] [inMemory|durable|commands|skewed|cached …]: our flows next to make, ninja and
// snakemake, in one run. Read the ratios.
import { spawnSync } from 'node:child_process';
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { timed } from '../process-time.mjs';
import { needsOf, SHAPES } from './shapes.mjs';

const quick = process.argv.includes('--quick');
const rounds = quick ? 1 : 3;
const dir = mkdtempSync(join(tmpdir(), 'crore-bench-flows-'));
const crore = fileURLToPath(new URL('../../bin/crore', import.meta.url));
const turn = fileURLToPath(new URL('./nodes.mjs', import.meta.url));
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const row = (...cells) => console.log(`| ${cells.map((cell) => (cell === 'NaN' ? '-' : cell)).join(' | ')} |`);

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

/** Appends of one page, each with an fdatasync: the limit for a chain of durable commits. */
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
  crore: { file: 'flow.json', run: (j) => [crore, ['run', 'flow.json', '-j', j, '-q']] },
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

/**
 * Start-up matters most in small graphs, so they run in more rounds, next to a Node process that does nothing. The shell
 * has `true` built in: only `/bin/true` shows what real programs cost.
 */
function commands() {
  const names = Object.keys(RUNNERS);
  const ratios = ['ours / make', 'ours / ninja', 'less bare Node / make', 'CPU: ours / make', 'CPU: less bare Node'];
  for (const command of ['/bin/true', 'true']) {
    head(`\`${command}\`, -j 2, ms (all told, start-up too)`, 'shape', 'nodes', 'bare Node', ...names, ...ratios);
    for (const shape of ['fan', 'layered', 'chain']) {
      const sizes = quick ? [100, 1_000] : [100, 1_000, ...(shape === 'fan' ? [4_000] : [])];
      for (const n of sizes) {
        writeAll(n, needsOf(n, SHAPES[shape](n)), command);
        commandRow(shape, n, names);
      }
    }
  }
}

function commandRow(shape, n, names) {
  const took = Object.fromEntries(['bare', ...names].map((name) => [name, []]));
  for (let round = 0; round < (n > 100 ? rounds : 5 * rounds); round++) {
    took.bare.push(timed('node', ['-e', '0'], dir));
    for (const name of names) {
      if (n > (RUNNERS[name].most ?? n)) continue;
      const one = timed(...RUNNERS[name].run('2'), dir);
      if (one) took[name].push(one);
    }
  }
  const of = (name, key) => (took[name].length > 0 ? median(took[name].map((one) => one[key])) : Number.NaN);
  const ratio = (key, peer, less = 0) => ((of('crore', key) - less) / of(peer, key)).toFixed(2);
  const clock = [ratio('ms', 'make'), ratio('ms', 'ninja'), ratio('ms', 'make', of('bare', 'ms'))];
  const cpu = [ratio('cpu', 'make'), ratio('cpu', 'make', of('bare', 'cpu'))];
  row(shape, n, ...Object.keys(took).map((name) => of(name, 'ms').toFixed(0)), ...clock, ...cpu);
}

/** One long leaf after two short nodes, among many short ones that come first in the file; all times in `unit` seconds. */
function skewedGraph(short, unit) {
  const sleep = (units) => `sleep ${(units * unit).toFixed(3)}`;
  const nodes = Object.fromEntries(Array.from({ length: short }, (_, i) => [`s${i}`, { run: sleep(1) }]));
  return {
    ...nodes,
    first: { run: sleep(1) },
    second: { run: sleep(1), needs: ['first'] },
    long: { run: sleep(30), needs: ['second'] },
  };
}

/** With short nodes, the start of the runner and of each `sleep` is part of the measurement; with long ones it is not. */
function skewed() {
  const short = 60;
  head('one long leaf, -j 4', 'a short node, s', 'seconds', 'max(critical path, work / N)', 'ratio');
  for (const unit of quick ? [0.02, 0.1] : [0.02, 0.1, 0.4]) {
    writeFileSync(join(dir, 'skewed.json'), JSON.stringify({ nodes: skewedGraph(short, unit) }));
    const seconds = timed(crore, ['run', 'skewed.json', '-j', '4', '-q'], dir).ms / 1_000;
    const bound = Math.max(32, (short + 32) / 4) * unit;
    row(unit, seconds.toFixed(2), bound.toFixed(2), (seconds / bound).toFixed(2));
  }
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

const parts = { inMemory, durable, commands, skewed, cached };
const asked = Object.keys(parts).filter((name) => process.argv.includes(name));

try {
  for (const name of asked.length > 0 ? asked : Object.keys(parts)) parts[name]();
} finally {
  rmSync(dir, { recursive: true, force: true });
}
