import { type Graph, makeGraph } from '../graph/graph.js';
import { FUNCTION } from '../graph/graph-text.js';
import { DEFAULT_OPTIONS, type NodeSpec, type Work } from '../graph/node-spec.js';
import { readFlow } from '../input/document.js';
import { isModule, readSource } from '../input/source.js';
import type { FlowInfo, Journal } from './journal.js';

/** The graph as it was stored; functions are loaded from their module again. */
export async function loadGraph(journal: Journal, info: FlowInfo): Promise<Graph> {
  const text = (await journal.definition(info.id)) ?? '';
  const again = text === '' || text.includes(JSON.stringify(FUNCTION));
  if (again && info.file !== '' && (isModule(info.file) || text === '')) return readSource({ file: info.file });
  return readFlow(JSON.parse(text), info.id, () => info.id);
}

/** What is read of a stored node here. */
interface StoredNode {
  run?: string | string[];
  queue?: string;
  map?: string;
  needs?: Record<string, string>;
}

/**
 * The graph of a stored definition alone, to be looked at: options are left out, and a function is a mere mention. The
 * definition was checked before it was stored; checking again would take three times as long.
 */
export function sketchGraph(text: string): Graph {
  const { name, nodes } = JSON.parse(text) as { name: string; nodes: Record<string, StoredNode> };
  const ids = Object.keys(nodes);
  const index = new Map(ids.map((id, node) => [id, node]));
  const [from, to, policies]: [number[], number[], number[]] = [[], [], []];
  const specs: NodeSpec[] = ids.map((id, node) => {
    const { map, needs } = nodes[id]!;
    for (const up in needs) {
      const known = index.get(up);
      if (known === undefined) continue;
      from.push(known);
      to.push(node);
      policies.push(needs[up] === 'finished' ? 1 : 0);
    }
    return { work: workOf(nodes[id]!), options: DEFAULT_OPTIONS, ...(map === undefined ? {} : { map }) };
  });
  const edges = { from: Int32Array.from(from), to: Int32Array.from(to), policies: Uint8Array.from(policies) };
  return makeGraph({ name, ids, specs, index, ...edges });
}

function workOf({ run, queue }: StoredNode): Work {
  if (queue !== undefined) return { kind: 'queue', queue, payload: undefined };
  if (run === FUNCTION) return { kind: 'function', call: () => {} };
  return { kind: 'shell', run: run ?? '' };
}
