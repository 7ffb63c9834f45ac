import { confirm } from '../frame/confirm.js';
import { actAndSay } from '../lib/toast.js';

/** What cannot be undone, out of the way of fingers. */
export function DangerZone({ queue }: { queue: string }) {
  return (
    <details class="disclosure">
      <summary>Danger zone</summary>
      <div class="disclosure-body">
        <p>Obliterating a queue deletes all its jobs, including running ones, and all results.</p>
        <button type="button" class="button danger" onClick={() => void obliterate(queue)}>
          Obliterate this queue …
        </button>
      </div>
    </details>
  );
}

async function obliterate(queue: string): Promise<void> {
  const text = 'Everything in this queue is deleted, also what is running. This cannot be undone.';
  if (!(await confirm({ title: 'Obliterate this queue?', text, verb: 'Obliterate', danger: true, typed: queue })))
    return;
  await actAndSay({ action: 'obliterate', queue }, () => `Obliterated ${queue}`);
}
