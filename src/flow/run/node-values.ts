import type { NodeOutcome } from '../executors/executor.js';
import type { Graph } from '../graph/graph.js';

const VALUE_LIMIT = 1_048_576;

/** The outcome, unless its value cannot be written down: then that is its failure. */
export function checkValue(outcome: NodeOutcome): NodeOutcome {
  if (outcome.value === undefined) return outcome;
  try {
    const { length } = JSON.stringify(outcome.value) ?? '';
    if (length <= VALUE_LIMIT) return outcome;
    return { exit: 1, fatal: true, error: `its result is ${length} characters, the limit is ${VALUE_LIMIT}` };
  } catch (error) {
    const why = (error as Error).message.split('\n')[0];
    return { exit: 1, fatal: true, error: `its result cannot be written as JSON: ${why}` };
  }
}

/** Results of upstream nodes that gave any. Without a prototype: ids are anybody's, and no two objects look alike. */
export function needsOf(
  { upAt, ups, ids }: Graph,
  values: ReadonlyMap<number, unknown>,
  node: number,
): Record<string, unknown> | undefined {
  let needs: Record<string, unknown> | undefined;
  for (let e = upAt[node]!; e < upAt[node + 1]!; e++) {
    const value = values.get(ups[e]!);
    if (value === undefined) continue;
    needs ??= Object.create(null) as Record<string, unknown>;
    needs[ids[ups[e]!]!] = value;
  }
  return needs;
}
