import { checkPark } from '../../engine/input/children.js';
import { CLAIMED_TASK, settlementOf } from '../../engine/raw-task.js';
import { CroreError } from '../../errors.js';
import { type AttemptError, errorLine, writeAttempt } from '../../job/attempt.js';
import { newId } from '../../job/id.js';
import type { Entry } from '../../job/job.js';
import { type Counted, die, fail, finish, type Outcome, park, release, snooze } from '../../job/transitions.js';
import { AddOutcome, type WorkRequest_Settle } from '../../proto/crore/v1/crore_pb.js';
import type * as pb from '../../proto/crore/v1/job_pb.js';
import { toFailure } from '../../store/grpc/codec.js';
import { toChildren } from '../../store/grpc/spec-codec.js';
import { toMs } from '../../store/grpc/times.js';
import type { Settlement } from '../../store/store.js';
import { bodyOf } from './requests.js';

const LONGEST_ERROR = 4_096;

/** The outcomes of adding a job, on the wire. */
export const ADD_OUTCOMES = {
  created: AddOutcome.CREATED,
  duplicate: AddOutcome.DUPLICATE,
  full: AddOutcome.FULL,
  replaced: AddOutcome.REPLACED,
  extended: AddOutcome.EXTENDED,
};

export interface Judge {
  random: () => number;
  now: () => number;
  limit: number;
  /** The queue of the entries. */
  queue: string;
}

/** Translates a worker's report about an entry into a settlement. */
export function settlementFor(entry: Entry, settle: WorkRequest_Settle, judge: Judge): Settlement {
  const job = entry.job ?? CLAIMED_TASK;
  const settlement = settlementOf(entry, outcomeOf(job, settle, judge), () => newId(judge.now()));
  checkPark(settlement);
  const error = errorOf(settle);
  if (!error) return settlement;
  const { startedAt } = entry.job ?? {};
  const { worker } = entry.lease;
  const attempt = { attempt: job.attempt, outcome: 'failed' as const, startedAt, endedAt: judge.now(), worker, error };
  return { ...settlement, attempt: writeAttempt(attempt) };
}

function errorOf({ outcome }: WorkRequest_Settle): AttemptError | undefined {
  if (outcome.case !== 'fail' && outcome.case !== 'fatal') return undefined;
  const { error, failure } = outcome.value;
  return failure ? toFailure(failure) : { name: '', message: short(error) };
}

function outcomeOf(job: Counted, { outcome }: WorkRequest_Settle, { random, now, limit, queue }: Judge): Outcome {
  switch (outcome.case) {
    case 'done':
      return finish(job, bodyOf(outcome.value.result, 'the result', limit));
    case 'fail': {
      const delay = toMs(outcome.value.delay);
      return fail(job, lineOf(outcome.value), {
        random,
        now: now(),
        delay: delay === undefined ? undefined : Math.max(0, delay),
      });
    }
    case 'fatal':
      return die(job, lineOf(outcome.value));
    case 'snooze':
      return snooze(job, Math.max(0, toMs(outcome.value.delay) ?? 0));
    case 'release':
      return release(job);
    case 'park':
      return park(job, toChildren(outcome.value.children, queue));
    case 'cancel': {
      const { attempt, crashes } = release(job);
      return { to: 'cancelled', attempt, crashes, error: short(outcome.value.reason) || 'cancelled by its worker' };
    }
    default:
      throw new CroreError('BAD_OPTION', 'a settlement has no outcome');
  }
}

/** The error in one line; without one, it is made of the details. */
function lineOf({ error, failure }: { error: string; failure?: pb.Failure }): string {
  return error === '' && failure ? errorLine(toFailure(failure)) : short(error);
}

function short(text: string): string {
  return text.length > LONGEST_ERROR ? `${text.slice(0, LONGEST_ERROR)}…` : text;
}
