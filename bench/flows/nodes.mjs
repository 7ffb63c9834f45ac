// One run in its own process: functions that do nothing. argv: shape, nodes, store ('' for none).
import { Draft } from '../../dist/flow/graph/graph-builder.js';
import { DEFAULT_OPTIONS } from '../../dist/flow/graph/node-spec.js';
import { startFlow } from '../../dist/flow/run/start.js';
import { SHAPES } from './shapes.mjs';

const [shape, count, store] = process.argv.slice(2);
const n = Number(count);
const spec = { work: { kind: 'function', call: () => {} }, options: DEFAULT_OPTIONS };

function graphOf(size) {
  const draft = new Draft((id) => id);
  for (let i = 0; i < size; i++) draft.node(`n${i}`, spec);
  for (const [from, to] of SHAPES[shape](size)) draft.edge(`n${from}`, `n${to}`);
  return draft.finish({ name: 'bench' });
}

async function run(graph, url) {
  const started = await startFlow(graph, { slots: 8, store: url || undefined });
  await started.finish();
  if (started.run.counts.done !== graph.ids.length) throw new Error('not every node is done');
}

// Warm-up: the compiler runs in parallel during the first rounds, and its CPU time would count as ours.
for (let round = 0; round < 4; round++) await run(graphOf(10_000), '');
const graph = graphOf(n);
const cpu = process.cpuUsage();
const begin = performance.now();
await run(graph, store);
const ms = performance.now() - begin;
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ ms, cpu: (user + system) / n, rss: process.resourceUsage().maxRSS / 1024 }));
