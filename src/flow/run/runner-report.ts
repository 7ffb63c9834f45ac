import { RUNNING, STATE_NAMES } from '../graph/node-spec.js';
import { MOST_RUNNING, type RunnerReport, type RunningNode } from '../journal/journal.js';
import type { Run } from './run.js';

/** What a runner says about its flow: the number of nodes in each state, and what runs. */
export function reportOn({ graph, scheduler, running }: Run): RunnerReport {
  const sums = new Uint32Array(STATE_NAMES.length);
  for (const state of scheduler.states) sums[state]!++;
  const counts: RunnerReport['counts'] = {};
  STATE_NAMES.forEach((name, state) => {
    if (sums[state]! > 0) counts[name] = sums[state]!;
  });
  const list: RunningNode[] = [];
  const listed = new Set<number>();
  for (const { id, node, startedAt, attempt } of running) {
    if (list.length === MOST_RUNNING) break;
    list.push({ id, start: startedAt, attempt });
    listed.add(node);
  }
  return { counts, running: [...list, ...waiting(graph.ids, scheduler.states, listed, MOST_RUNNING - list.length)] };
}

/** Nodes that have started and wait: for their next attempt, or for slots for their parts. */
function waiting(ids: readonly string[], states: Uint8Array, listed: ReadonlySet<number>, most: number): RunningNode[] {
  const found: RunningNode[] = [];
  for (let node = states.indexOf(RUNNING); node >= 0 && found.length < most; node = states.indexOf(RUNNING, node + 1)) {
    if (!listed.has(node)) found.push({ id: ids[node]! });
  }
  return found;
}
