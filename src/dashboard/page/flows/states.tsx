import type { FlowState, NodeState } from '../../api.js';
import { Badge } from '../components/badge.js';
import { count } from '../lib/format.js';

/** States in the order of the bars: what is over first. */
export const NODE_STATES: readonly NodeState[] = [
  'done',
  'failed',
  'skipped',
  'cancelled',
  'running',
  'ready',
  'blocked',
];

/** A sign for each state, so that nobody has to tell colours apart. */
export const SIGNS: Record<NodeState, string> = {
  done: '✓',
  failed: '✕',
  skipped: '»',
  cancelled: '–',
  running: '▸',
  ready: '○',
  blocked: '…',
};

const MEANINGS: Record<NodeState, string> = {
  done: 'ended well',
  failed: 'failed for good',
  skipped: 'did not run, because something it needs did not succeed',
  cancelled: 'did not run, or was stopped',
  running: 'runs now',
  ready: 'waits for a free slot',
  blocked: 'waits for other nodes',
};

export type Counts = Partial<Record<NodeState, number>>;

export function NodeBadge({ state }: { state: NodeState }) {
  return (
    <span class={`badge node-${state}`} title={MEANINGS[state]}>
      <span aria-hidden="true">{SIGNS[state]}</span>
      {state}
    </span>
  );
}

const TONES: Record<FlowState, string> = {
  running: 'active',
  done: 'good',
  failed: 'bad',
  interrupted: 'warn',
  cancelled: 'plain',
};
const FLOW_MEANINGS: Record<FlowState, string> = {
  running: 'A runner works on it',
  done: 'Every node ended well',
  failed: 'Some nodes failed',
  interrupted: 'Its runner was stopped or killed; crore run --resume goes on',
  cancelled: 'Somebody cancelled it',
};

export function FlowBadge({ state }: { state: FlowState }) {
  return <Badge text={state} tone={TONES[state]} title={FLOW_MEANINGS[state]} />;
}

/** How many nodes are in each state, as a bar. */
export function StateBar({ counts, label = true }: { counts: Counts; label?: boolean }) {
  const shown = NODE_STATES.filter((state) => (counts[state] ?? 0) > 0);
  const text = shown.map((state) => `${count(counts[state]!)} ${state}`).join(', ') || 'nothing known yet';
  return (
    <div class="state-bar" role="img" aria-label={text} title={label ? text : undefined}>
      {shown.map((state) => (
        <span key={state} class={`fill-${state}`} style={{ flexGrow: counts[state] }} />
      ))}
    </div>
  );
}

/** The same as a list that also explains the colours and signs. */
export function StateList({ counts }: { counts: Counts }) {
  return (
    <ul class="state-list">
      {NODE_STATES.filter((state) => (counts[state] ?? 0) > 0).map((state) => (
        <li key={state}>
          <NodeBadge state={state} /> {count(counts[state]!)}
        </li>
      ))}
    </ul>
  );
}
