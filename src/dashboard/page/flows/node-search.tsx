import { useId, useMemo, useState } from 'preact/hooks';
import type { FlowNode } from '../../api.js';
import { keyOf } from './pictures.js';
import { SIGNS } from './states.js';

const MOST = 8;

/** Finds nodes by a part of their id; Enter takes the first one. */
export function NodeSearch({ nodes, onFind }: { nodes: readonly FlowNode[]; onFind: (key: string) => void }) {
  const [text, setText] = useState('');
  const list = useId();
  const found = useMemo(() => matches(nodes, text), [nodes, text]);
  const take = (key: string) => {
    setText('');
    onFind(key);
  };
  const onSubmit = (event: Event) => {
    event.preventDefault();
    if (found[0]) take(keyOf(found[0]));
  };
  return (
    <form class="node-search" onSubmit={onSubmit}>
      <input
        class="input"
        type="search"
        placeholder="Find a node"
        aria-label="Find a node"
        aria-controls={list}
        data-search=""
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <ul class="found" id={list} hidden={text === ''}>
        {found.map((node) => (
          <li key={keyOf(node)}>
            <button type="button" onClick={() => take(keyOf(node))}>
              <span aria-hidden="true">{SIGNS[node.state]}</span> <bdi>{node.id}</bdi>
            </button>
          </li>
        ))}
        {found.length === 0 && <li class="muted">No node has this in its id</li>}
      </ul>
    </form>
  );
}

function matches(nodes: readonly FlowNode[], text: string): FlowNode[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return [];
  const found: FlowNode[] = [];
  for (const node of nodes) {
    if (node.id.toLowerCase().includes(wanted)) found.push(node);
    if (found.length === MOST) break;
  }
  return found;
}
