import { basename } from 'node:path';
import type { Graph } from '../graph/graph.js';
import { badFlow, GraphBuilder } from '../graph/graph-builder.js';
import { checkKeys, isRecord, readEnv, readNeeds, readNode, readTokens } from './fields.js';
import { lineAt, nodeKeys, parseJson } from './json.js';
import { readText } from './tables.js';

const FLOW_KEYS = ['name', 'env', 'tokens', 'cache', 'nodes'];

/** Returns the position of a node, or of one of its needs. */
export type Places = (id: string, need?: string) => string;

/** Reads a flow in YAML or JSON; the YAML parser is loaded only when it is needed. */
export async function readDocument(file: string): Promise<Graph> {
  const text = readText(file);
  if (text.trim() === '') throw badFlow(file, "the file is empty: expected a map with 'nodes'");
  const [value, places] = file.endsWith('.json')
    ? readJson(text, file)
    : (await import('./yaml.js')).readYaml(text, file);
  return readFlow(value, file, places);
}

function readJson(text: string, file: string): [unknown, Places] {
  const value = parseJson(text, file);
  let known: Map<string, number> | undefined;
  const lines = () => {
    known ??= nodeLines(text, file);
    return known;
  };
  // A text that is unchanged after parsing and serializing has no duplicate node; searching for duplicates takes much
  // longer.
  const plain = text.trim();
  try {
    if (JSON.stringify(value) !== plain && JSON.stringify(value, null, 2) !== plain) lines();
  } catch (error) {
    if (error instanceof RangeError) throw badFlow(file, 'it is nested too deeply');
    throw error;
  }
  return [value, (id) => (lines().has(id) ? `${file}:${lineAt(text, lines().get(id)!)}` : file)];
}

/** The line of each node; throws on duplicates. */
function nodeLines(text: string, file: string): Map<string, number> {
  const lines = new Map<string, number>();
  for (const { key, at } of nodeKeys(text)) {
    if (lines.has(key)) throw badFlow(`${file}:${lineAt(text, at)}`, `duplicate node '${key}'`);
    lines.set(key, at);
  }
  return lines;
}

/** Reads a parsed flow file, whatever its format. */
export function readFlow(value: unknown, file: string, places: Places): Graph {
  if (!isRecord(value)) throw badFlow(file, "a flow must be a map with 'nodes'");
  checkKeys(value, FLOW_KEYS, 'the flow', file);
  const { name, env, tokens, cache, nodes } = value;
  if (name !== undefined && (typeof name !== 'string' || !/^[\w.@-]{1,200}$/.test(name)))
    throw badFlow(file, 'name may contain only letters, digits, . _ @ -');
  if (cache !== undefined && typeof cache !== 'boolean') throw badFlow(file, 'cache must be true or false');
  if (nodes === undefined) throw badFlow(file, "'nodes' is missing");
  if (nodes !== null && !isRecord(nodes)) throw badFlow(file, 'nodes must be a map of ids to nodes');
  const builder = new GraphBuilder(places);
  for (const [id, node] of Object.entries(nodes ?? {})) {
    const place = () => places(id);
    const spec = readNode(id, node, cache === true, place);
    builder.node(id, spec, place);
    const needs = readNeeds(id, (node as { needs?: unknown }).needs, place);
    for (const [need, policy] of needs) builder.edge(need, id, policy);
    if (spec.map !== undefined && !needs.some(([need]) => need === spec.map)) builder.edge(spec.map, id);
  }
  return builder.finish({
    name: name ?? nameOf(file),
    env: readEnv(env, 'env', file),
    tokens: readTokens(tokens, 'tokens', file),
  });
}

export function nameOf(file: string): string {
  return (
    basename(file)
      .replace(/\.[^.]*$/, '')
      .replace(/[^\w.@-]/g, '-') || 'flow'
  );
}
