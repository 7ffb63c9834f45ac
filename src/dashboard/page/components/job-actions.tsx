import type { State } from '../../../job/job.js';
import { confirm } from '../frame/confirm.js';
import { mayAct } from '../lib/api.js';
import { actAndSay } from '../lib/toast.js';
import { type Verb, verbsFor } from '../lib/verbs.js';
import { MoveButton } from './move-button.js';

interface JobActionsProps {
  queue: string;
  id: string;
  state: State;
  small?: boolean;
}

/** What can be done to a job in its state; nothing for those who may only look. */
export function JobActions({ queue, id, state, small = false }: JobActionsProps) {
  if (!mayAct()) return null;
  return (
    <span class="buttons tight">
      {verbsFor(state).map((verb) => (
        <button
          key={verb.action}
          type="button"
          class={`button ${small ? 'small' : ''} ${verb.danger ? 'danger' : small ? '' : 'primary'}`}
          aria-label={`${verb.label} ${id}`}
          onClick={() => void actOn(verb, queue, id)}
        >
          {verb.label}
        </button>
      ))}
      <MoveButton
        state={state}
        what={`job ${id}`}
        label="Move"
        small={small}
        move={(to) => actAndSay({ action: 'move', queue, ids: [id], to }, () => `Moved ${id} to ${to}`)}
      />
    </span>
  );
}

async function actOn(verb: Verb, queue: string, id: string): Promise<void> {
  const text = 'This cannot be undone.';
  if (verb.danger && !(await confirm({ title: `${verb.label} job ${id}?`, text, verb: verb.label, danger: true })))
    return;
  await actAndSay({ action: verb.action, queue, ids: [id] }, ({ changed }) =>
    changed > 0 ? `${verb.past} ${id}` : `Nothing to do: ${id} has changed its state in the meantime`,
  );
}
