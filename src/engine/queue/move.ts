import { CroreError } from '../../errors.js';
import type { MoveOutcome } from '../../store/store.js';
import { checkName } from '../input/check.js';

/** States in which a job may move. */
export const MOVABLE = ['scheduled', 'ready', 'dead'] as const;

/** Checks the name of the other queue. */
export function checkMove(queue: string, to: unknown): string {
  const name = checkName(to, 'queue name');
  if (name === queue) throw new CroreError('BAD_OPTION', `move: the jobs are already in queue '${queue}'`);
  return name;
}

/** The error for a job that was not moved. */
export function moveError(queue: string, id: string, to: string, outcome: Exclude<MoveOutcome, 'moved'>): CroreError {
  const job = `job '${id}' of queue '${queue}'`;
  switch (outcome) {
    case 'unknown':
      return new CroreError('NOT_FOUND', `there is no job '${id}' in queue '${queue}'`);
    case 'started':
      return new CroreError('JOB_STARTED', `${job} has started or ended: it can no longer be moved`);
    case 'linked':
      return new CroreError('JOB_LINKED', `${job} needs other jobs or is needed by them: it cannot be moved`);
    case 'taken':
      return new CroreError('ID_TAKEN', `queue '${to}' already has a job with the id or the unique key of '${id}'`);
  }
}
