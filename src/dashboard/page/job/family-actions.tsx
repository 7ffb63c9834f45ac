import type { Action, JobView } from '../../api.js';
import { confirm } from '../frame/confirm.js';
import { mayAct } from '../lib/api.js';
import { plural } from '../lib/format.js';
import { actAndSay } from '../lib/toast.js';

type FamilyAction = Extract<Action, { id: string; queue: string }>['action'];

interface Deed {
  action: FamilyAction;
  label: string;
  /** What is asked first; absent if it harms nothing. */
  question?: string;
  past: (changed: number) => string;
}

function Buttons({ job, deeds }: { job: JobView; deeds: readonly Deed[] }) {
  if (!mayAct() || deeds.length === 0) return null;
  return (
    <span class="buttons tight">
      {deeds.map((deed) => (
        <button
          key={deed.action}
          type="button"
          class={`button small ${deed.question ? 'danger' : ''}`}
          onClick={() => void act(job, deed)}
        >
          {deed.label}
        </button>
      ))}
    </span>
  );
}

async function act({ queue, id }: JobView, { action, label, question, past }: Deed): Promise<void> {
  const text = 'This cannot be undone.';
  if (question && !(await confirm({ title: question, text, verb: label, danger: true }))) return;
  await actAndSay({ action, queue, id }, ({ changed }) => past(changed));
}

const hasEnded = (state?: string) => state === undefined || ['done', 'dead', 'cancelled'].includes(state);

/** For a job and all below it. */
export function TreeActions({ job }: { job: JobView }) {
  const all = [job, ...job.tree];
  const open = all.filter(({ state }) => !hasEnded(state)).length;
  const more = job.treeCut ? ' or more' : '';
  const deeds: Deed[] = [
    {
      action: 'remove-tree',
      label: 'Remove tree',
      question: `Remove this job and all below it: ${plural(all.length, 'job')}${more}?`,
      past: (changed) => `Removed ${plural(changed, 'job')}`,
    },
  ];
  if (open > 0)
    deeds.unshift({
      action: 'cancel-tree',
      label: 'Cancel tree',
      question: `Cancel ${plural(open, 'job')}${more} of this tree?`,
      past: (changed) => `Cancelled ${plural(changed, 'job')}`,
    });
  return <Buttons job={job} deeds={deeds} />;
}

/** For the job of a batch. */
export function BatchActions({ job, batch }: { job: JobView; batch: NonNullable<JobView['batch']> }) {
  const pending = batch.total - batch.done - batch.dead - batch.cancelled;
  const deeds: Deed[] = [];
  if (batch.open && !hasEnded(job.state))
    deeds.push({ action: 'close-batch', label: 'Close batch', past: () => 'Closed: no more members can be added' });
  if (pending > 0)
    deeds.push({
      action: 'cancel-members',
      label: 'Cancel the rest',
      question: `Cancel ${plural(pending, 'member')} of this batch?`,
      past: (changed) => `Cancelled ${plural(changed, 'job')}`,
    });
  return <Buttons job={job} deeds={deeds} />;
}
