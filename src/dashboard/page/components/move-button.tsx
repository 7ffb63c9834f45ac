import type { State } from '../../../job/job.js';
import { ask } from '../frame/confirm.js';

const MOVABLE: readonly State[] = ['scheduled', 'ready', 'dead'];

interface MoveButtonProps {
  /** The state of what would move. */
  state: State;
  /** What would move: `job order-17`. */
  what: string;
  label: string;
  small: boolean;
  move: (to: string) => Promise<unknown>;
}

/** Asks for the other queue and moves jobs there; nothing in a state that cannot move. */
export function MoveButton({ state, what, label, small, move }: MoveButtonProps) {
  if (!MOVABLE.includes(state)) return null;
  const onClick = async () => {
    const text = 'Waiting jobs keep everything but their place. Dead ones are ready there, with fresh attempts.';
    const to = await ask({ title: `Move ${what}?`, text, verb: 'Move', field: 'To the queue' });
    if (to !== undefined) await move(to);
  };
  return (
    <button
      type="button"
      class={small ? 'button small' : 'button'}
      aria-label={`Move ${what}`}
      onClick={() => void onClick()}
    >
      {label}
    </button>
  );
}
