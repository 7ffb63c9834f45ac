import type { State } from '../../../job/job.js';

/** States in the order of a job's life, as everywhere on the page. */
export const STATES: readonly State[] = ['blocked', 'scheduled', 'ready', 'active', 'done', 'dead', 'cancelled'];

/** What a state is called and means, for those who see it for the first time. */
export const MEANINGS: Record<State, string> = {
  blocked: 'waits for other jobs to end',
  scheduled: 'waits for its time',
  ready: 'waits for a worker',
  active: 'a worker runs it',
  done: 'ended well',
  dead: 'failed for good',
  cancelled: 'was cancelled',
};

export function StateBadge({ state }: { state: State }) {
  return (
    <span class={`badge state-${state}`} title={MEANINGS[state]}>
      {state}
    </span>
  );
}

/** A small label: `good`, `bad`, `warn` or plain. */
export function Badge({ text, tone = 'plain', title }: { text: string; tone?: string; title?: string }) {
  return (
    <span class={`badge tone-${tone}`} title={title}>
      {text}
    </span>
  );
}
