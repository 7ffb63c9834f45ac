import { existsSync } from 'node:fs';
import { type Graph, onlyNode } from '../graph/graph.js';
import { DONE, type NodeSpec } from '../graph/node-spec.js';
import { computeWeights } from '../graph/weights.js';
import { Cache, type CacheDecision } from '../journal/cache.js';
import { openJournal } from '../journal/open.js';
import { NodeScheduler } from './node-scheduler.js';
import { findNode, type StartOptions } from './start.js';

/** Lists what would run, in start order if every node took the same time, and marks cached nodes. */
export async function dryRun(graph: Graph, options: StartOptions): Promise<string> {
  const only = options.only === undefined ? undefined : onlyNode(graph, findNode(graph, options.only));
  const decision = await decisions(graph, options);
  const scheduler = new NodeScheduler(graph, computeWeights(graph), 1_000_000_000);
  for (let i = 0; i < graph.ids.length; i++) if (only && !only.has(i)) scheduler.settle(i, DONE);
  scheduler.begin();
  const lines: string[] = [];
  for (let wave = 1; scheduler.open > 0; wave++) {
    const started: number[] = [];
    for (let node = scheduler.next(); node >= 0; node = scheduler.next()) started.push(node);
    for (const node of started) {
      const cached = decision(node) === false ? '  (cached)' : '';
      lines.push(`${String(wave).padStart(4)}  ${graph.ids[node]}  ${shown(graph.specs[node]!)}${cached}\n`);
      scheduler.free(node, true);
      scheduler.end(node, DONE);
    }
    for (const node of started) scheduler.release(node);
  }
  return lines.join('');
}

async function decisions(graph: Graph, options: StartOptions): Promise<(node: number) => boolean | undefined> {
  const url = options.localState?.memories ?? options.store;
  const file = url?.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
  const nothing =
    url === undefined ||
    options.force ||
    !graph.specs.some((spec) => spec.options.cache) ||
    (file !== undefined && !existsSync(file));
  if (nothing) return () => undefined;
  const journal = await openJournal(url);
  const cache = await Cache.open(graph, journal, options.cwd ?? process.cwd());
  await journal.close();
  const known = new Map<number, CacheDecision>();
  for (const node of graph.order) cache.why(node, known);
  return (node) => (graph.specs[node]!.options.cache ? known.get(node)!.runs : undefined);
}

export function shown({ work, map }: NodeSpec): string {
  const each = map === undefined ? '' : `for each of ${map}: `;
  if (work.kind === 'function') return `${each}a function`;
  if (work.kind === 'queue') return `${each}a job for queue '${work.queue}'`;
  return `${each}${typeof work.run === 'string' ? work.run.replaceAll('\n', '\\n') : work.run.join(' ')}`;
}
