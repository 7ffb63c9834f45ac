import type { State } from './job.js';

/** Everything that can happen to a job. */
export type Event =
  | 'add'
  | 'unblock'
  | 'skip'
  | 'due'
  | 'claim'
  | 'done'
  | 'retry'
  | 'snooze'
  | 'park'
  | 'release'
  | 'lose'
  | 'die'
  | 'expire'
  | 'cancel'
  | 'rerun'
  | 'update'
  | 'report';

export interface Transition {
  from: State | 'new';
  event: Event;
  to: State;
  /** When, in one short sentence; `docs/states.md` contains the same table. */
  when: string;
}

/** The complete state machine. Nothing else is legal; the model test checks every step of both stores against it. */
export const TRANSITIONS: readonly Transition[] = [
  { from: 'new', event: 'add', to: 'blocked', when: 'an upstream job has not ended, or it is the job of a batch' },
  { from: 'new', event: 'add', to: 'scheduled', when: 'its time is in the future' },
  { from: 'new', event: 'add', to: 'ready', when: 'it may run now' },
  { from: 'new', event: 'add', to: 'cancelled', when: 'an upstream job has already ended without success' },
  { from: 'blocked', event: 'unblock', to: 'ready', when: 'the last upstream job ended as required' },
  {
    from: 'blocked',
    event: 'unblock',
    to: 'scheduled',
    when: 'the last upstream job ended as required, its time is in the future',
  },
  { from: 'blocked', event: 'skip', to: 'dead', when: 'a child that it waited for ended without success' },
  { from: 'blocked', event: 'skip', to: 'cancelled', when: 'an upstream job ended without success' },
  { from: 'blocked', event: 'cancel', to: 'cancelled', when: 'it was cancelled' },
  {
    from: 'scheduled',
    event: 'due',
    to: 'ready',
    when: 'it is due, or was made due; it goes to the back of the queue',
  },
  { from: 'scheduled', event: 'cancel', to: 'cancelled', when: 'it was cancelled' },
  { from: 'ready', event: 'claim', to: 'active', when: 'a worker claimed it' },
  { from: 'ready', event: 'cancel', to: 'cancelled', when: 'it was cancelled' },
  { from: 'active', event: 'done', to: 'done', when: 'the handler returned' },
  { from: 'active', event: 'retry', to: 'scheduled', when: 'it failed or exceeded its reservation, attempts are left' },
  { from: 'active', event: 'snooze', to: 'scheduled', when: 'the handler asked for a later time; not charged' },
  { from: 'active', event: 'park', to: 'blocked', when: 'the handler asked to wait for its children; not charged' },
  { from: 'active', event: 'park', to: 'ready', when: 'its children have already ended; it goes to the back' },
  { from: 'active', event: 'park', to: 'dead', when: 'a child has already ended without success' },
  { from: 'active', event: 'release', to: 'ready', when: 'the worker returned it to the front; not charged' },
  { from: 'active', event: 'lose', to: 'ready', when: 'the worker died; back to the front, one crash' },
  { from: 'active', event: 'lose', to: 'dead', when: 'the worker died; the job has crashed too many workers' },
  { from: 'active', event: 'die', to: 'dead', when: 'no attempt is left, or the handler threw Fatal' },
  { from: 'active', event: 'expire', to: 'cancelled', when: 'it was claimed after its expiry; the handler never ran' },
  { from: 'active', event: 'cancel', to: 'cancelled', when: 'it was cancelled; the lease ends' },
  { from: 'scheduled', event: 'report', to: 'done', when: 'a late report says that an earlier delivery succeeded' },
  { from: 'ready', event: 'report', to: 'done', when: 'a late report says that an earlier delivery succeeded' },
  { from: 'ready', event: 'update', to: 'scheduled', when: 'its time was changed to one in the future' },
  { from: 'dead', event: 'rerun', to: 'ready', when: 'it was retried; its counts are reset' },
  { from: 'done', event: 'rerun', to: 'ready', when: 'somebody ran it again; its counts are reset' },
  { from: 'cancelled', event: 'rerun', to: 'ready', when: 'somebody ran it again; its counts are reset' },
];

export function isLegal(from: State | 'new', to: State): boolean {
  return TRANSITIONS.some((transition) => transition.from === from && transition.to === to);
}
