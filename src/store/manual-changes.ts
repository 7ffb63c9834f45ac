import { writeAction } from '../job/attempt.js';
import type { JobChanges } from './store.js';

/** The line for the history of a job that a person has changed; undefined if it was no person. */
export function changeLine({ by, ...changes }: JobChanges, now: number): string | undefined {
  return by === undefined ? undefined : writeAction('changed', now, by, whatChanged(changes));
}

/** The same for jobs that were moved here from another queue. */
export function moveLine(from: string, now: number, by: string | undefined): string | undefined {
  return by === undefined ? undefined : writeAction('moved', now, by, from);
}

function whatChanged({ payload, priority, at, delay }: JobChanges): string {
  const parts = [
    ...(payload === undefined ? [] : ['payload']),
    ...(priority === undefined ? [] : ['priority']),
    ...(at === undefined && delay === undefined ? [] : [delay === 0 ? 'due now' : 'time']),
  ];
  return parts.join(', ');
}
