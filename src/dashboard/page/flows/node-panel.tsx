import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { FlowNode, FlowView } from '../../api.js';
import { Scroll } from '../components/scroll.js';
import { plural } from '../lib/format.js';
import { At, duration, Since } from '../lib/time.js';
import { NodeBadge, SIGNS, StateBar, StateList } from './states.js';

const MOST_NEIGHBOURS = 30;

interface PanelProps {
  view: FlowView;
  at: number;
  onFind: (node: number) => void;
  onClose: () => void;
}

/** Everything that is known about one node, beside the picture; on a phone, over its bottom. */
export function NodePanel({ view, at, onFind, onClose }: PanelProps) {
  const node = view.nodes[at]!;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), [at]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    onClose();
  };
  return (
    <section class="node-panel card" aria-label="The chosen node" onKeyDown={onKeyDown}>
      <div class="node-panel-head">
        <h2 ref={heading} tabIndex={-1}>
          <bdi>{node.id}</bdi>
        </h2>
        <button type="button" class="button small" onClick={onClose}>
          Close
        </button>
      </div>
      <Facts node={node} />
      {node.counts && (
        <>
          <StateBar counts={node.counts} label={false} />
          <StateList counts={node.counts} />
        </>
      )}
      {node.error !== undefined && <Text title="Error" text={node.error} />}
      {node.output !== undefined && <Text title="Last lines of its output" text={node.output} />}
      <Neighbours title="Needs" view={view} nodes={neighbours(view.edges, at, 1)} onFind={onFind} />
      <Neighbours title="Needed by" view={view} nodes={neighbours(view.edges, at, 0)} onFind={onFind} />
    </section>
  );
}

function Facts({ node }: { node: FlowNode }) {
  const { state, start, seconds, size } = node;
  return (
    <dl class="node-facts">
      <Fact name="State">
        <NodeBadge state={state} />
        {size !== undefined && <span class="muted"> {plural(size, 'node')}</span>}
      </Fact>
      {node.items && (
        <Fact name="Items">
          <StateList counts={node.items} />
        </Fact>
      )}
      {start !== undefined && (
        <Fact name="Started">
          <At at={start} />
        </Fact>
      )}
      {seconds !== undefined && (
        <Fact name={size === undefined ? 'Took' : 'First to last'}>{duration(seconds * 1_000)}</Fact>
      )}
      {seconds === undefined && start !== undefined && (
        <Fact name="Runs for">
          <Since at={start} />
        </Fact>
      )}
      {node.attempts !== undefined && <Fact name={state === 'running' ? 'Attempt' : 'Attempts'}>{node.attempts}</Fact>}
      {node.exit !== undefined && <Fact name="Exit code">{node.exit}</Fact>}
      {node.work && (
        <Fact name="Runs">
          <code>{node.work}</code>
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Text({ title, text }: { title: string; text: string }) {
  return (
    <div>
      <h3>{title}</h3>
      <Scroll class="node-text" label={title}>
        <pre>{text}</pre>
      </Scroll>
    </div>
  );
}

interface NeighboursProps {
  title: string;
  view: FlowView;
  nodes: readonly number[];
  onFind: (node: number) => void;
}

function Neighbours({ title, view, nodes, onFind }: NeighboursProps) {
  if (nodes.length === 0) return null;
  return (
    <div>
      <h3>
        {title} {nodes.length > 1 && <span class="muted">({nodes.length})</span>}
      </h3>
      <ul class="neighbours">
        {nodes.slice(0, MOST_NEIGHBOURS).map((node) => (
          <li key={node}>
            <button type="button" title={view.nodes[node]!.id} onClick={() => onFind(node)}>
              <span class={`sign node-${view.nodes[node]!.state}`} aria-hidden="true">
                {SIGNS[view.nodes[node]!.state]}
              </span>
              <bdi>{view.nodes[node]!.id}</bdi>
              <span class="off-screen">, {view.nodes[node]!.state}</span>
            </button>
          </li>
        ))}
        {nodes.length > MOST_NEIGHBOURS && <li class="muted">and {nodes.length - MOST_NEIGHBOURS} more</li>}
      </ul>
    </div>
  );
}

/** The other ends of the edges that have the node at this side: 0 from, 1 to. */
function neighbours(edges: readonly number[], node: number, side: 0 | 1): number[] {
  const found: number[] = [];
  for (let e = 0; e < edges.length; e += 2) if (edges[e + side] === node) found.push(edges[e + 1 - side]!);
  return found;
}
