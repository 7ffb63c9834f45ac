import { isMap, isScalar, LineCounter, parseDocument, type YAMLMap } from 'yaml';
import { badFlow } from '../graph/graph-builder.js';
import type { Places } from './document.js';

export function readYaml(text: string, file: string): [unknown, Places] {
  const counter = new LineCounter();
  const document = guarded(file, () => parseDocument(text, { lineCounter: counter, prettyErrors: false }));
  const line = (at: number | undefined) => `${file}:${counter.linePos(at ?? 0).line}`;
  const [error] = document.errors;
  if (error) {
    const twice = error.code === 'DUPLICATE_KEY' ? /^[^\s:]+/.exec(text.slice(error.pos[0]))?.[0] : undefined;
    throw badFlow(line(error.pos[0]), twice === undefined ? error.message : `duplicate key '${twice}'`);
  }
  const nodes = document.get('nodes', true) as unknown;
  const value = guarded(file, () => document.toJS({ maxAliasCount: 1_000 }) as unknown);
  return [value, (id, need) => line(isMap(nodes) ? rangeOf(nodes, id, need) : 0)];
}

/** The library throws on aliases that multiply and on nesting beyond its stack. */
function guarded<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof ReferenceError) throw badFlow(file, `cannot resolve aliases: ${error.message}`);
    if (error instanceof RangeError) throw badFlow(file, 'it is nested too deeply');
    throw error;
  }
}

/** The position of the node's key, or of the entry where it needs another node. */
function rangeOf(nodes: YAMLMap, id: string, need: string | undefined): number | undefined {
  const pair = nodes.items.find(({ key }) => String(isScalar(key) ? key.value : key) === id);
  if (pair === undefined) return undefined;
  const start = isScalar(pair.key) ? pair.key.range?.[0] : undefined;
  if (need === undefined || !isMap(pair.value)) return start;
  const needs = pair.value.items.find(({ key }) => isScalar(key) && key.value === 'needs');
  return (isScalar(needs?.key) ? needs.key.range?.[0] : undefined) ?? start;
}
