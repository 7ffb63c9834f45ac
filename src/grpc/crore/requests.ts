import { checkName } from '../../engine/input/check.js';
import { type AddOptions, resolveJob } from '../../engine/input/options.js';
import { checkSize } from '../../engine/input/payload.js';
import { CroreError } from '../../errors.js';
import type { Body, Lease, NewJob } from '../../job/job.js';
import type { TraceContext } from '../../job/trace-context.js';
import type { Limits as WireLimits } from '../../proto/crore/v1/crore_pb.js';
import type * as pb from '../../proto/crore/v1/job_pb.js';
import { NeedPolicy } from '../../proto/crore/v1/job_pb.js';
import { toBody, toLease } from '../../store/grpc/codec.js';
import { MODES, relationsOf, SCOPES, toBackoff } from '../../store/grpc/spec-codec.js';
import { toMs, toTime } from '../../store/grpc/times.js';
import { type Capacity, MAX_BATCH } from '../../store/store.js';

/** Validates requests before anything happens. */

export function queueName(name: string): string {
  return checkName(name, 'queue name');
}

export function idsOf(ids: readonly string[]): readonly string[] {
  if (ids.length > MAX_BATCH)
    throw new CroreError('BAD_OPTION', `${ids.length} ids at once, the limit is ${MAX_BATCH}`);
  for (const id of ids) checkName(id, 'job id');
  return ids;
}

/** JSON has to be valid, because every other interface will read it. */
export function bodyOf(body: pb.Body | undefined, what: string, limit: number): Body | undefined {
  const known = toBody(body);
  if (known === undefined) return undefined;
  if (typeof known === 'string' && known !== '') {
    try {
      JSON.parse(known);
    } catch {
      throw new CroreError('BAD_PAYLOAD', `${what} is not JSON`);
    }
  }
  checkSize(known, what, limit);
  return known;
}

/** The trace of a call goes on in its jobs, unless they carry one of their own. */
export function newJob(queue: string, job: pb.NewJob, now: number, limit: number, trace?: TraceContext): NewJob {
  const payload = bodyOf(job.payload, `payload for queue '${queue}'`, limit) ?? 'null';
  const asked = job.id !== '' || job.priority !== 0 || job.time.case !== undefined || job.options !== undefined;
  const options = asked || trace ? optionsOf(queue, job) : undefined;
  if (options && trace) options.headers = { ...trace, ...options.headers };
  const resolved = resolveJob(queue, payload, options, now);
  if (job.generatedId && job.id !== '') Object.assign(resolved, { id: checkName(job.id, 'job id'), fresh: false });
  return job.replaceEnded ? { ...resolved, replaceEnded: true } : resolved;
}

/** A time in the past is now. */
export function timeOf(time: pb.NewJob['time']): { delay?: number; at?: number } {
  if (time.case === 'delay') return { delay: Math.max(0, toMs(time.value)!) };
  return time.case === 'at' ? { at: Math.max(0, toTime(time.value)!) } : {};
}

export function optionsOf(queue: string, { id, generatedId, priority, time, options }: pb.NewJob): AddOptions {
  const asked: AddOptions = { priority, ...timeOf(time) };
  if (id !== '' && !generatedId) asked.id = id;
  if (!options) return asked;
  if (options.idWindow) asked.idWindow = Math.max(0, toMs(options.idWindow)!);
  const reservation = toMs(options.reservation);
  const expires = toMs(options.expires);
  if (options.attempts !== undefined) asked.attempts = options.attempts;
  if (options.retryFor) asked.retryFor = Math.max(0, toMs(options.retryFor)!);
  if (options.backoff) asked.backoff = toBackoff(options.backoff);
  if (reservation !== undefined && reservation !== 0) asked.reservation = reservation;
  if (expires !== undefined && expires !== 0) asked.expires = expires;
  if (options.keep) asked.keep = keepOf(options.keep);
  if (options.keepDead) asked.keepDead = keepOf(options.keepDead);
  if (Object.keys(options.headers).length > 0) asked.headers = options.headers;
  if (options.group !== '') asked.group = options.group;
  if (options.unique) asked.unique = uniqueOf(options.unique);
  if (options.needs.length > 0) asked.needs = options.needs.map(needOf);
  return { ...asked, ...relationsOf(options, queue) };
}

function keepOf({ time, count }: pb.Keep): AddOptions['keep'] {
  const keep: AddOptions['keep'] = {};
  if (time) keep.for = toMs(time)!;
  if (count !== undefined) keep.count = Number(count);
  return keep;
}

function uniqueOf({ key, scope, ttl, mode }: pb.Unique): AddOptions['unique'] {
  return { key, scope: SCOPES[scope], ttl: toMs(ttl), mode: MODES[mode] };
}

function needOf({ queue, id, on }: pb.Need) {
  return {
    id,
    queue: queue === '' ? undefined : queue,
    on: on === NeedPolicy.FINISHED ? ('finished' as const) : ('success' as const),
  };
}

export function limitsOf(limits: WireLimits | undefined): Capacity {
  const whole = (value: bigint | undefined) => (value === undefined ? undefined : Math.max(0, Number(value)));
  return { count: whole(limits?.count), bytes: whole(limits?.bytes) };
}

/** Matches the complete tokens of all stores, those of PostgreSQL without the last part: a part of one must not be accepted. */
const TOKEN = /^\d+\.(?:\d+-\d{3}\.[\w-]{12}|\d+\.\d+\.[\w-]{12}(?:\.[0-9a-z]+)?)$/;

export function checkToken(token: string): string {
  if (!TOKEN.test(token)) throw new CroreError('BAD_OPTION', 'invalid token: it was not returned by a claim');
  return token;
}

export function leaseOf(lease: pb.Lease | undefined): Lease {
  const known = toLease(lease);
  checkToken(known.token);
  return known;
}

export function durationOf(ms: number | undefined, what: string, low: number, high: number): number {
  if (ms === undefined || !(ms >= low && ms <= high))
    throw new CroreError('BAD_DURATION', `${what} must be from ${low} ms to ${high} ms`);
  return ms;
}

/** The progress of a job is JSON that every other interface will read. */
export function checkProgress(progress: string, limit: number): string {
  if (progress.length > limit)
    throw new CroreError('PAYLOAD_TOO_LARGE', `progress is over the limit of ${limit} bytes`);
  try {
    JSON.parse(progress);
  } catch {
    throw new CroreError('BAD_PAYLOAD', 'progress is not JSON');
  }
  return progress;
}
