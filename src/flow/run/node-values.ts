import type { NodeOutcome } from '../executors/executor.js';
import type { Graph } from '../graph/graph.js';

const VALUE_LIMIT = 1_048_576;

/** Returns the outcome, or a failure when its value cannot be serialized. */
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

/**
 * Results of the upstream nodes that returned one. The object has no prototype: users choose the ids, and no two of
 * these objects have the same shape.
 */
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
