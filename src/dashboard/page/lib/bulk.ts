/** Something done to every job that matches: it is counted, confirmed, followed, and can be stopped. One at a time. */
import { signal } from '@preact/signals';
import type { BulkAction, BulkProgress } from '../../api.js';
import { bulk } from './api.js';
import { say } from './toast.js';

export interface BulkRequest {
  action: BulkAction;
  /** What the button says: `Retry`; and what it says afterwards: `Retried`. */
  verb: string;
  past: string;
  /** What it is done to: `dead jobs of “mails”`, in the form that fits the number. */
  jobs: (count: number) => string;
  /** What somebody should know before. */
  note?: string;
  danger?: boolean;
  /** How many there are, if that is known without counting. */
  known?: number;
}

export interface BulkRun extends BulkRequest {
  phase: 'counting' | 'asking' | 'running' | 'ended';
  seen: number;
  changed: number;
  total: number;
  stopped?: boolean;
  error?: string;
}

export const bulkRun = signal<BulkRun | undefined>(undefined);
let stop = new AbortController();

export async function startBulk(request: BulkRequest): Promise<void> {
  const total = request.known ?? 0;
  bulkRun.value = { ...request, phase: 'counting', seen: 0, changed: 0, total };
  if (request.known === undefined) {
    const error = await follow(countOf(request.action));
    if (error !== undefined) return update({ phase: 'ended', changed: 0, error });
    update({ total: bulkRun.value?.changed ?? 0 });
  }
  update({ phase: 'asking', changed: 0 });
}

/** The same jobs, only counted. */
function countOf(action: BulkAction): BulkAction {
  if (action.action !== 'move') return { ...action, action: 'count' };
  const { queue, filter } = action;
  return { action: 'count', queue, filter };
}

export async function confirmBulk(): Promise<void> {
  const run = bulkRun.value;
  if (!run) return;
  update({ phase: 'running', seen: 0, changed: 0 });
  const error = await follow(run.action);
  update({ phase: 'ended', error: error === '' ? undefined : error });
  if (error === undefined) finish();
}

/** Stops what is going on; what has ended, or has not begun, is put away. */
export function closeBulk(): void {
  const running = bulkRun.value?.phase === 'running';
  if (running) update({ phase: 'ended', stopped: true });
  else bulkRun.value = undefined;
  stop.abort();
}

/** A complete success needs no dialog to be closed. */
function finish(): void {
  const run = bulkRun.value;
  if (!run) return;
  say(`${run.past} ${run.changed.toLocaleString('en')} ${run.jobs(run.changed)}`);
  bulkRun.value = undefined;
}

/** Returns what went wrong, if anything: empty if it was stopped. */
async function follow(action: BulkAction): Promise<string | undefined> {
  stop = new AbortController();
  const { signal: aborted } = stop;
  let last: BulkProgress | undefined;
  try {
    for await (last of bulk(action, aborted)) update({ seen: last.seen, changed: last.changed });
    if (last?.error !== undefined) return last.error;
    return last?.done ? undefined : 'The connection ended before everything was done';
  } catch (error) {
    if (aborted.aborted) return '';
    return error instanceof Error ? error.message : String(error);
  }
}

function update(changes: Partial<BulkRun>): void {
  if (bulkRun.value) bulkRun.value = { ...bulkRun.value, ...changes };
}
