import type { Graph } from './graph.js';
import { DEFAULT_OPTIONS, type NodeSpec } from './node-spec.js';

/** Serializes a graph as an equivalent JSON flow file, so that it can be shown and run again without the original file. */
export function graphText(graph: Graph): string {
  const { name, env, tokens, ids, specs, upAt, ups, upPolicies } = graph;
  const nodes = ids.map((id, i) => {
    const fields = fieldsOf(specs[i]!);
    const needs: Record<string, string> = {};
    for (let e = upAt[i]!; e < upAt[i + 1]!; e++) needs[ids[ups[e]!]!] = upPolicies[e] === 1 ? 'finished' : 'success';
    if (Object.keys(needs).length > 0) fields.needs = needs;
    return `${JSON.stringify(id)}:${JSON.stringify(fields)}`;
  });
  return `{"name":${JSON.stringify(name)},"env":${JSON.stringify(env)},"tokens":${JSON.stringify(tokens)},"nodes":{${nodes.join(',\n')}}}`;
}

function fieldsOf({ work, options, map }: NodeSpec): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  if (work.kind === 'shell') fields.run = work.run;
  else if (work.kind === 'queue') Object.assign(fields, { queue: work.queue, payload: work.payload });
  // A function cannot be serialized: its module is loaded again.
  else fields.run = FUNCTION;
  if (map !== undefined) fields.map = map;
  // Shared by most nodes. Without this line, V8 spends 15 ms on optimizing the loop at 500 programs.
  if (options === DEFAULT_OPTIONS) return fields;
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === DEFAULT_OPTIONS[key as keyof typeof options]) continue;
    fields[key] = key === 'timeout' ? `${value}ms` : value;
  }
  return fields;
}

export const FUNCTION = ': a function of the module';
