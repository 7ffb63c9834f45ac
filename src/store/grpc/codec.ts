import { create } from '@bufbuild/protobuf';
import {
  type Duration,
  durationFromMs,
  durationMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from '@bufbuild/protobuf/wkt';
import { CroreError } from '../../errors.js';
import type {
  Backoff,
  Body,
  Entry,
  Job,
  Keep,
  Lease,
  NewJob,
  Spec,
  State,
  UniqueMode,
  UniqueScope,
} from '../../job/job.js';
import { STATES } from '../../job/job.js';
import { DEFAULT_SPEC, sharedSpec } from '../../job/spec.js';
import type { Outcome } from '../../job/transitions.js';
import * as pb from '../../proto/crore/v1/job_pb.js';
import type { Counts, Settlement } from '../store.js';

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

export function fromMs(ms: number): Duration {
  return durationFromMs(ms);
}

export function toMs(duration: Duration | undefined): number | undefined {
  return duration && durationMs(duration);
}

export function fromTime(at: number | undefined): Timestamp | undefined {
  return at === undefined ? undefined : timestampFromMs(at);
}

export function toTime(at: Timestamp | undefined): number | undefined {
  return at && timestampMs(at);
}

export function fromState(state: State): pb.State {
  return STATES.indexOf(state) + 1;
}

export function toState(state: pb.State): State {
  const known = STATES[state - 1];
  if (!known) throw new CroreError('BAD_OPTION', `state must be one of ${STATES.join(', ')}`);
  return known;
}

function fromBackoff(backoff: Backoff): pb.Backoff {
  switch (backoff.kind) {
    case 'fixed':
      return create(pb.BackoffSchema, { kind: { case: 'fixed', value: { delay: fromMs(backoff.delay) } } });
    case 'exponential': {
      const { delay, factor, cap, jitter } = backoff;
      const value = { delay: fromMs(delay), factor, cap: fromMs(cap), jitter };
      return create(pb.BackoffSchema, { kind: { case: 'exponential', value } });
    }
    case 'quartic': {
      const value = { base: fromMs(backoff.base), jitter: fromMs(backoff.jitter), cap: fromMs(backoff.cap) };
      return create(pb.BackoffSchema, { kind: { case: 'quartic', value } });
    }
  }
}

/** In the form of the library's options, which fill in defaults for absent values. */
export function toBackoff({ kind }: pb.Backoff): Backoff | undefined {
  switch (kind.case) {
    case 'fixed':
      return { kind: 'fixed', delay: toMs(kind.value.delay) ?? 0 };
    case 'exponential': {
      const { delay, factor, cap, jitter } = kind.value;
      return {
        kind: 'exponential',
        delay: toMs(delay) ?? 1_000,
        factor: factor === 0 ? 2 : factor,
        cap: toMs(cap) ?? 3_600_000,
        jitter,
      };
    }
    case 'quartic': {
      const { base, jitter, cap } = kind.value;
      return {
        kind: 'quartic',
        base: toMs(base) ?? 15_000,
        jitter: toMs(jitter) ?? 30_000,
        cap: toMs(cap) ?? 30 * 86_400_000,
      };
    }
    default:
      return undefined;
  }
}

function fromKeep({ ms, count }: Keep): pb.Keep {
  return create(pb.KeepSchema, { time: fromMs(ms), count: BigInt(count) });
}

function toKeep(keep: pb.Keep | undefined, fallback: Keep): Keep {
  if (!keep) return fallback;
  return {
    ms: toMs(keep.time) ?? fallback.ms,
    count: keep.count === undefined ? fallback.count : Number(keep.count),
  };
}

export const MODES: readonly (UniqueMode | undefined)[] = [undefined, 'keep', 'extend', 'replace'];
export const SCOPES: readonly (UniqueScope | undefined)[] = [undefined, 'waiting', 'alive', 'window'];

/** Only the values that differ from the defaults; undefined for a job with default options. */
export function fromSpec(spec: Spec): pb.JobOptions | undefined {
  if (spec === DEFAULT_SPEC) return undefined;
  const { attempts, backoff, reservation, expires, keep, headers, group, unique, needs, raw } = spec;
  return create(pb.JobOptionsSchema, {
    attempts: attempts === DEFAULT_SPEC.attempts ? undefined : attempts,
    backoff: backoff === DEFAULT_SPEC.backoff ? undefined : fromBackoff(backoff),
    reservation: reservation > 0 ? fromMs(reservation) : undefined,
    expires: expires > 0 ? fromMs(expires) : undefined,
    keep: keep.done === DEFAULT_SPEC.keep.done ? undefined : fromKeep(keep.done),
    keepDead: keep.dead === DEFAULT_SPEC.keep.dead ? undefined : fromKeep(keep.dead),
    headers: headers ?? {},
    unique: unique && {
      key: unique.key,
      scope: SCOPES.indexOf(unique.scope),
      ttl: unique.ttl > 0 ? fromMs(unique.ttl) : undefined,
      mode: MODES.indexOf(unique.mode),
    },
    group,
    needs: needs?.map(({ queue, id, on }) => ({
      queue,
      id,
      on: on === 'finished' ? pb.NeedPolicy.FINISHED : pb.NeedPolicy.SUCCESS,
    })),
    raw: raw === true,
  });
}

/** For a job from a store: its options were validated when it was added. */
export function toSpec(options: pb.JobOptions | undefined, queue: string): Spec {
  if (!options) return DEFAULT_SPEC;
  const { attempts, backoff, reservation, expires, headers, group, unique, needs, raw } = options;
  const done = toKeep(options.keep, DEFAULT_SPEC.keep.done);
  const dead = toKeep(options.keepDead, DEFAULT_SPEC.keep.dead);
  const kept = done === DEFAULT_SPEC.keep.done && dead === DEFAULT_SPEC.keep.dead;
  return sharedSpec({
    attempts: attempts ?? DEFAULT_SPEC.attempts,
    backoff: (backoff && toBackoff(backoff)) ?? DEFAULT_SPEC.backoff,
    reservation: toMs(reservation) ?? 0,
    expires: toMs(expires) ?? 0,
    keep: kept ? DEFAULT_SPEC.keep : { done, dead },
    headers: Object.keys(headers).length > 0 ? headers : undefined,
    group: group === '' ? undefined : group,
    unique: unique && toUnique(unique),
    needs: needs.length > 0 ? needs.map((need) => toNeed(need, queue)) : undefined,
    raw: raw || undefined,
  });
}

function toUnique({ key, scope, ttl, mode }: pb.Unique): NonNullable<Spec['unique']> {
  const unique = { key, scope: SCOPES[scope] ?? 'alive', ttl: toMs(ttl) ?? 0 };
  return MODES[mode] === undefined ? unique : { ...unique, mode: MODES[mode] };
}

function toNeed({ queue, id, on }: pb.Need, own: string): NonNullable<Spec['needs']>[number] {
  return { queue: queue === '' ? own : queue, id, on: on === pb.NeedPolicy.FINISHED ? 'finished' : 'success' };
}

export function fromNewJob(job: NewJob): pb.NewJob {
  const time = (): pb.NewJob['time'] => {
    if (job.at !== undefined) return { case: 'at', value: timestampFromMs(job.at) };
    return job.delay === undefined ? { case: undefined } : { case: 'delay', value: fromMs(job.delay) };
  };
  return create(pb.NewJobSchema, {
    id: job.id,
    payload: fromBody(job.payload),
    priority: job.priority,
    time: time(),
    options: fromSpec(job.spec),
    replaceEnded: job.replaceEnded ?? false,
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
    options: fromSpec(job.spec),
  });
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
  return known;
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
  if (kind.case === 'job') return { lease: toLease(lease), job: toJob(kind.value) };
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
    case 'dead':
      return { case: 'dead', value: { error: move.error } };
    case 'cancelled':
      return { case: 'cancelled', value: { error: move.error } };
  }
}

export function toMove(move: pb.Move | undefined): Outcome {
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
    case 'dead':
      return { to: 'dead', ...counts, error: to.value.error };
    case 'cancelled':
      return { to: 'cancelled', ...counts, error: to.value.error };
    default:
      throw new CroreError('BAD_OPTION', 'a settlement says nothing about what becomes of its job');
  }
}

export function fromSettlement({ lease, outcome: move, spec, priority, record }: Settlement): pb.Settlement {
  return create(pb.SettlementSchema, {
    lease: fromLease(lease),
    move: fromMove(move),
    options: fromSpec(spec),
    priority,
    record: record && fromNewJob(record),
  });
}

export function toSettlement(settlement: pb.Settlement, queue: string): Settlement {
  const { lease, move, options, priority, record } = settlement;
  return {
    lease: toLease(lease),
    outcome: toMove(move),
    spec: toSpec(options, queue),
    priority,
    record: record && toRecord(record, queue),
  };
}

export function fromCounts(counts: Counts): pb.Counts {
  const all = Object.fromEntries(STATES.map((state) => [state, BigInt(counts[state])]));
  return create(pb.CountsSchema, all);
}

export function toCounts(counts: pb.Counts | undefined): Counts {
  return Object.fromEntries(STATES.map((state) => [state, Number(counts?.[state] ?? 0)])) as Counts;
}
