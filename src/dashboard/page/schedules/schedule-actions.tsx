import { confirm } from '../frame/confirm.js';
import { actAndSay } from '../lib/toast.js';

export function ScheduleActions({ name }: { name: string }) {
  return (
    <span class="buttons tight">
      <button type="button" class="button small" aria-label={`Run now: ${name}`} onClick={() => void run(name)}>
        Run now
      </button>
      <button type="button" class="button small danger" aria-label={`Remove ${name}`} onClick={() => void remove(name)}>
        Remove
      </button>
    </span>
  );
}

async function run(name: string): Promise<void> {
  await actAndSay({ action: 'run-schedule', name }, ({ job }) =>
    job ? `Added job ${job.id} to ${job.queue}` : `Ran ${name}`,
  );
}

async function remove(name: string): Promise<void> {
  const text = 'It will add no more jobs. Jobs that it has added stay.';
  if (!(await confirm({ title: `Remove the schedule ${name}?`, text, verb: 'Remove', danger: true }))) return;
  await actAndSay({ action: 'remove-schedule', name }, () => `Removed the schedule ${name}`);
}
