import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { CroreError } from '../../errors.js';
import {
  type Attempt,
  type AttemptError,
  describeError,
  MANUAL_ACTIONS,
  type ManualAction,
  readActions,
  readAttempts,
  writeAction,
  writeAttempt,
} from '../../job/attempt.js';
import {
  type BatchCounts,
  type Body,
  type Entry,
  type Job,
  type Lease,
  type NewJob,
  STATES,
  type State,
} from '../../job/job.js';
import type { Outcome } from '../../job/transitions.js';
import * as pb from '../../proto/crore/v1/job_pb.js';
import type { Counts, Settlement } from '../store.js';
import { fromChildren, fromSpec, toChildren, toSpec } from './spec-codec.js';
import { fromMs, fromTime, toMs, toTime } from './times.js';

/** Converts the types of a store to messages and back: the only place that knows both. */

export function fromBody(body: Body | undefined): pb.Body | undefined {
  if (body === undefined) return undefined;
  return create(pb.BodySchema, {
    kind: typeof body === 'string' ? { case: 'json', value: body } : { case: 'data', value: body },
  });
}

export function toBody(body: pb.Body | undefined): Body | undefined {
  return body?.kind.case === undefined ? undefined : body.kind.value;
}

export function fromState(state: State): pb.State {
  return STATES.indexOf(state) + 1;
}

export function toState(state: pb.State): State {
  const known = STATES[state - 1];
  if (!known) throw new CroreError('BAD_OPTION', `state must be one of ${STATES.join(', ')}`);
  return known;
}

export function fromTimes(delay: number | undefined, at: number | undefined): pb.NewJob['time'] {
  if (at !== undefined) return { case: 'at', value: timestampFromMs(at) };
  return delay === undefined ? { case: undefined } : { case: 'delay', value: fromMs(delay) };
}

export function fromNewJob(job: NewJob): pb.NewJob {
  return create(pb.NewJobSchema, {
    id: job.id,
    payload: fromBody(job.payload),
    priority: job.priority,
    time: fromTimes(job.delay, job.at),
    options: fromSpec(job.spec),
    replaceEnded: job.replaceEnded ?? false,
    generatedId: job.spec.idWindow === undefined,
  });
}

/** A record for a failed raw task: an engine created it, so it is not validated again. */
export function toRecord(job: pb.NewJob, queue: string): NewJob {
  return {
    id: job.id,
    payload: toBody(job.payload) ?? '',
    priority: job.priority,
    spec: toSpec(job.options, queue),
  };
}

export function fromJob(job: Job): pb.Job {
  return create(pb.JobSchema, {
    queue: job.queue,
    id: job.id,
    state: fromState(job.state),
    payload: fromBody(job.payload),
    priority: job.priority,
    attempt: job.attempt,
    crashes: job.crashes,
    createdAt: timestampFromMs(job.createdAt),
    runAt: fromTime(job.runAt),
    startedAt: fromTime(job.startedAt),
    finishedAt: fromTime(job.finishedAt),
    worker: job.worker,
    token: job.token,
    result: fromBody(job.result),
    error: job.error,
    answered: job.answered,
    progress: job.progress,
    log: job.log,
    logTimes: job.logTimes?.map((at) => timestampFromMs(at)),
    progressSteps: job.progressSteps?.map(({ at, text }) => ({ at: fromTime(at), text })),
    attempts: readAttempts(job.attempts ?? '').map(fromAttempt),
    actions: readActions(job.attempts ?? '').map(({ at, ...action }) => ({ ...action, at: fromTime(at) })),
    options: fromSpec(job.spec),
    children: job.children && fromChildren(job.children),
    batch: job.batch && fromBatchCounts(job.batch),
  });
}

function fromBatchCounts({ open, total, done, dead, cancelled }: BatchCounts): pb.BatchCounts {
  const whole = { total: BigInt(total), done: BigInt(done), dead: BigInt(dead), cancelled: BigInt(cancelled) };
  return create(pb.BatchCountsSchema, { open, ...whole });
}

function toBatchCounts({ open, total, done, dead, cancelled }: pb.BatchCounts): BatchCounts {
  return { open, total: Number(total), done: Number(done), dead: Number(dead), cancelled: Number(cancelled) };
}

export function toJob(job: pb.Job): Job {
  const known: Job = {
    queue: job.queue,
    id: job.id,
    state: toState(job.state),
    payload: toBody(job.payload) ?? '',
    priority: job.priority,
    attempt: job.attempt,
    crashes: job.crashes,
    createdAt: toTime(job.createdAt) ?? 0,
    spec: toSpec(job.options, job.queue),
  };
  if (job.runAt) known.runAt = toTime(job.runAt);
  if (job.startedAt) known.startedAt = toTime(job.startedAt);
  if (job.finishedAt) known.finishedAt = toTime(job.finishedAt);
  if (job.worker !== '') known.worker = job.worker;
  if (job.token !== '') known.token = job.token;
  if (job.result) known.result = toBody(job.result);
  if (job.error !== undefined) known.error = job.error;
  if (job.answered) known.answered = true;
  if (job.progress !== undefined) known.progress = job.progress;
  if (job.log !== undefined) known.log = job.log;
  if (job.logTimes.length > 0) known.logTimes = job.logTimes.map((at) => toTime(at) ?? 0);
  if (job.progressSteps.length > 0)
    known.progressSteps = job.progressSteps.map(({ at, text }) => ({ at: toTime(at) ?? 0, text }));
  if (job.attempts.length + job.actions.length > 0) known.attempts = historyOf(job);
  if (job.children) known.children = toChildren(job.children, job.queue);
  if (job.batch) known.batch = toBatchCounts(job.batch);
  return known;
}

function historyOf({ attempts, actions }: pb.Job): string {
  const lines = attempts.map((one) => writeAttempt(toAttempt(one)));
  const known = actions.filter(({ action }) => (MANUAL_ACTIONS as readonly string[]).includes(action));
  return [
    ...lines,
    ...known.map(({ action, at, by, detail }) =>
      writeAction(action as ManualAction['action'], toTime(at) ?? 0, by, detail),
    ),
  ].join('');
}

const ATTEMPT_OUTCOMES: readonly (Attempt['outcome'] | undefined)[] = [undefined, 'done', 'failed', 'crashed'];

function fromAttempt({ attempt, outcome, startedAt, endedAt, worker, error }: Attempt): pb.Attempt {
  return create(pb.AttemptSchema, {
    attempt,
    outcome: ATTEMPT_OUTCOMES.indexOf(outcome),
    startedAt: fromTime(startedAt),
    endedAt: fromTime(endedAt),
    worker,
    error,
  });
}

function toAttempt({ attempt, outcome, startedAt, endedAt, worker, error }: pb.Attempt): Attempt {
  return {
    attempt,
    outcome: ATTEMPT_OUTCOMES[outcome] ?? 'failed',
    ...(startedAt ? { startedAt: toTime(startedAt) } : {}),
    endedAt: toTime(endedAt) ?? 0,
    ...(worker === '' ? {} : { worker }),
    ...(error ? { error: toFailure(error) } : {}),
  };
}

/** Bounded like the errors of our own workers. */
export function toFailure({ name, message, stack, stderr }: pb.Failure): AttemptError {
  return describeError(Object.assign(new Error(message), { name, stack: stack || undefined, stderr }));
}

export function fromLease({ worker, token, id }: Lease): pb.Lease {
  return create(pb.LeaseSchema, { worker, token, id });
}

export function toLease(lease: pb.Lease | undefined): Lease {
  if (!lease) throw new CroreError('BAD_OPTION', 'a lease is missing');
  const { worker, token, id } = lease;
  return id === '' ? { worker, token } : { worker, token, id };
}

export function fromEntry({ lease, job, task }: Entry): pb.Entry {
  return create(pb.EntrySchema, {
    lease: fromLease(lease),
    kind: job ? { case: 'job', value: fromJob(job) } : { case: 'task', value: task! },
  });
}

export function toEntry({ lease, kind }: pb.Entry): Entry {
  if (kind.case === 'job') {
    const job = toJob(kind.value);
    return { lease: { ...toLease(lease), at: job.startedAt }, job };
  }
  return { lease: toLease(lease), task: kind.value ?? new Uint8Array(0) };
}

function fromMove(move: Outcome): pb.Move {
  const { attempt, crashes } = move;
  return create(pb.MoveSchema, { attempt, crashes, to: toCase(move) });
}

function toCase(move: Outcome): NonNullable<Parameters<typeof create<typeof pb.MoveSchema>>[1]>['to'] {
  switch (move.to) {
    case 'done':
      return { case: 'done', value: { result: fromBody(move.result) } };
    case 'scheduled':
      return {
        case: 'scheduled',
        value: { delay: fromMs(move.delay), error: move.error, answered: move.answered === true },
      };
    case 'ready':
      return { case: 'ready', value: { error: move.error } };
    case 'blocked':
      return { case: 'parked', value: { children: fromChildren(move.list) } };
    case 'dead':
      return { case: 'dead', value: { error: move.error } };
    case 'cancelled':
      return { case: 'cancelled', value: { error: move.error } };
  }
}

export function toMove(move: pb.Move | undefined, queue: string): Outcome {
  const counts = { attempt: move?.attempt ?? 0, crashes: move?.crashes ?? 0 };
  const to = move?.to;
  switch (to?.case) {
    case 'done':
      return { to: 'done', ...counts, result: toBody(to.value.result) };
    case 'scheduled': {
      const { error, answered } = to.value;
      return { to: 'scheduled', ...counts, delay: Math.max(0, toMs(to.value.delay) ?? 0), error, answered };
    }
    case 'ready':
      return { to: 'ready', ...counts, error: to.value.error };
    case 'parked':
      return { to: 'blocked', ...counts, list: toChildren(to.value.children, queue) };
    case 'dead':
      return { to: 'dead', ...counts, error: to.value.error };
    case 'cancelled':
      return { to: 'cancelled', ...counts, error: to.value.error };
    default:
      throw new CroreError('BAD_OPTION', 'a settlement has no outcome');
  }
}

export function fromSettlement({ lease, outcome: move, spec, priority, record, attempt }: Settlement): pb.Settlement {
  const [ended] = readAttempts(attempt ?? '');
  return create(pb.SettlementSchema, {
    lease: fromLease(lease),
    move: fromMove(move),
    options: fromSpec(spec),
    priority,
    record: record && fromNewJob(record),
    attempt: ended && fromAttempt(ended),
  });
}

export function toSettlement(settlement: pb.Settlement, queue: string): Settlement {
  const { lease, move, options, priority, record, attempt } = settlement;
  return {
    lease: toLease(lease),
    outcome: toMove(move, queue),
    spec: toSpec(options, queue),
    priority,
    record: record && toRecord(record, queue),
    attempt: attempt && writeAttempt(toAttempt(attempt)),
  };
}

export function fromCounts(counts: Counts): pb.Counts {
  const all = Object.fromEntries(STATES.map((state) => [state, BigInt(counts[state])]));
  return create(pb.CountsSchema, { ...all, droppedDead: BigInt(counts.droppedDead ?? 0) });
}

export function toCounts(counts: pb.Counts | undefined): Counts {
  const known = Object.fromEntries(STATES.map((state) => [state, Number(counts?.[state] ?? 0)])) as Counts;
  const droppedDead = Number(counts?.droppedDead ?? 0);
  return droppedDead > 0 ? { ...known, droppedDead } : known;
}
