/** What can be done to jobs, and in which states. */
import type { State } from '../../../job/job.js';

export interface Verb {
  action: 'retry' | 'rerun' | 'run-now' | 'cancel' | 'remove';
  /** On the button, and when it is done. */
  label: string;
  past: string;
  states: readonly State[];
  danger: boolean;
  /** For all jobs that match; absent if it can only be done to one. */
  note?: string;
}

/** A verb for many jobs at once. */
export type BulkVerb = Verb & { action: 'retry' | 'cancel' | 'remove'; note: string };

export const VERBS: readonly Verb[] = [
  {
    action: 'retry',
    label: 'Retry',
    past: 'Retried',
    states: ['dead'],
    danger: false,
    note: 'Retried jobs go to the back of their queue with fresh attempts.',
  },
  { action: 'run-now', label: 'Run now', past: 'Due now:', states: ['scheduled'], danger: false },
  { action: 'rerun', label: 'Run again', past: 'Runs again:', states: ['done', 'cancelled'], danger: false },
  {
    action: 'cancel',
    label: 'Cancel',
    past: 'Cancelled',
    states: ['blocked', 'scheduled', 'ready', 'active'],
    danger: true,
    note: 'Cancelled jobs do not run, and neither does what depends on their success.',
  },
  {
    action: 'remove',
    label: 'Remove',
    past: 'Removed',
    states: ['done', 'dead', 'cancelled'],
    danger: true,
    note: 'Records, results and errors are deleted and cannot be brought back.',
  },
];

export function verbsFor(state: State): readonly Verb[] {
  return VERBS.filter((verb) => verb.states.includes(state));
}

export function bulkVerbsFor(state: State): readonly BulkVerb[] {
  return verbsFor(state).filter((verb): verb is BulkVerb => verb.note !== undefined);
}
