import { CroreError } from '../../errors.js';
import { DEFAULT_BACKOFF } from '../../job/backoff.js';
import { type Duration, milliseconds } from '../../job/duration.js';
import { newId } from '../../job/id.js';
import type {
  Backoff,
  BatchPolicy,
  Body,
  JobRef,
  Keep,
  Need,
  NeedPolicy,
  NewJob,
  Spec,
  Unique,
  UniqueMode,
  UniqueScope,
} from '../../job/job.js';
import { DEFAULT_SPEC, MOST_ATTEMPTS, NAMED_SPEC, sharedSpec } from '../../job/spec.js';
import type { JobChanges } from '../../store/store.js';
import { checkInteger, checkName, checkOneOf, checkOptions, describe } from './check.js';

/** Options of a new job. */
export interface AddOptions {
  /** Identity within the queue; default a UUIDv7. Adding a second job with an id that is taken is a duplicate. */
  id?: string;
  /** For how long after the job's end its `id` stays taken; default as long as done jobs are kept (`keep.for`). */
  idWindow?: Duration;
  /** Run the job no earlier than after this delay. */
  delay?: Duration;
  /** Run the job no earlier than this time; a time in the past means now. Exclusive with `delay`. */
  at?: Date | number;
  /** Higher runs first; default 0, from -1000000 to 1000000. */
  priority?: number;
  /** Deliveries to a worker before the job becomes dead; default 5. */
  attempts?: number;
  /**
   * Retry for this long, counted from when the job is due; with it, the number of attempts is not limited unless `attempts` is given.
   * The first attempt always takes place.
   */
  retryFor?: Duration;
  /** Wait between attempts: a duration or a curve; default exponential from 1 s to 1 h with 20 % jitter. */
  backoff?: Duration | BackoffOptions;
  /** How long an attempt may take before it counts as failed; default: as long as its worker lives. */
  reservation?: Duration;
  /** Allows only one job with this key at a time; see `UniqueOptions`. */
  unique?: string | UniqueOptions;
  /** Upstream jobs that have to end first: ids in this queue, or `{queue, id, on}`. */
  needs?: readonly (string | NeedOptions)[];
  /** Cancels the job unless it starts within this time of being added (or before this moment). */
  expires?: Duration | Date;
  /** How long ended jobs and their results are kept, and how many at most in this queue; default 1 h and 1000. */
  keep?: KeepOptions;
  /** The same for dead jobs; default 30 d and 100000. */
  keepDead?: KeepOptions;
  /** The job's group (a tenant, an account): groups take turns, and the jobs of one group share the limits set per group. */
  group?: string;
  /** Text stored with the job, such as a trace id. */
  headers?: Record<string, string>;
  /** The batch of which the job is a member: `queue.batch(id)`, or its queue and id. */
  batch?: JobRef;
  /** Makes it the job of a batch, and says when it runs; `queue.addBatch()` sets this. */
  batchPolicy?: BatchPolicy;
  /** The job that it is a child of; `job.addChildren()` and `crore.addTree()` set this. */
  parent?: JobRef;
}

export type BackoffOptions =
  | { kind: 'fixed'; delay: Duration }
  | { kind: 'exponential'; delay?: Duration; factor?: number; cap?: Duration; jitter?: number }
  | { kind: 'quartic'; base?: Duration; jitter?: Duration; cap?: Duration };

export interface UniqueOptions {
  key: string;
  /** How long the key stays taken; default `alive`. */
  scope?: UniqueScope;
  /** Frees the key after this time regardless of the scope; required for `window`. */
  ttl?: Duration;
  /**
   * What adding a second job does to a first one that still waits: `keep` (default) does nothing; `extend` restarts its delay and
   * `ttl`; `replace` does the same and also replaces its payload. With a `delay`, `replace` is a debounce.
   */
  mode?: UniqueMode;
}

export interface NeedOptions {
  id: string;
  queue?: string;
  on?: NeedPolicy;
}

export interface KeepOptions {
  for?: Duration;
  count?: number;
}

const KNOWN = [
  'id',
  'idWindow',
  'delay',
  'at',
  'priority',
  'attempts',
  'retryFor',
  'backoff',
  'reservation',
  'unique',
  'needs',
  'expires',
  'keep',
  'keepDead',
  'group',
  'headers',
  'batch',
  'batchPolicy',
  'parent',
] as const;
const HEADER_LIMIT = 16_384;
const HIGHEST_PRIORITY = 1_000_000;

/** Builds a job for the store from an encoded payload. `now` is the store's clock. */
export function resolveJob(queue: string, payload: Body, options: AddOptions | undefined, now: number): NewJob {
  if (options === undefined) return { id: newId(now), fresh: true, payload, priority: 0, spec: DEFAULT_SPEC };
  checkOptions(options, KNOWN, 'add');
  const { id, delay, at, priority } = options;
  if (delay !== undefined && at !== undefined)
    throw new CroreError('BAD_OPTION', "add: give 'delay' or 'at', not both");
  if (options.idWindow !== undefined && id === undefined)
    throw new CroreError('BAD_OPTION', "add: 'idWindow' needs an 'id'");
  return {
    id: id === undefined ? newId(now) : checkName(id, 'job id'),
    fresh: id === undefined,
    payload,
    priority: priority === undefined ? 0 : checkInteger(priority, 'priority', -HIGHEST_PRIORITY, HIGHEST_PRIORITY),
    delay: delay === undefined ? undefined : milliseconds(delay, 'delay'),
    at: at === undefined ? undefined : moment(at, 'at'),
    spec: resolveSpec(queue, options, now),
  };
}

/** What can be changed of a job that has not started; what is left out stays as it is. */
export interface UpdateOptions {
  /** As in `AddOptions`; a new priority or time moves the job to the back. */
  priority?: number;
  delay?: Duration;
  at?: Date | number;
}

export function resolveChanges(payload: Body | undefined, { priority, delay, at }: UpdateOptions): JobChanges {
  if (delay !== undefined && at !== undefined)
    throw new CroreError('BAD_OPTION', "update: give 'delay' or 'at', not both");
  const changes: JobChanges = {};
  if (payload !== undefined) changes.payload = payload;
  if (priority !== undefined)
    changes.priority = checkInteger(priority, 'priority', -HIGHEST_PRIORITY, HIGHEST_PRIORITY);
  if (delay !== undefined) changes.delay = milliseconds(delay, 'delay');
  if (at !== undefined) changes.at = moment(at, 'at');
  if (Object.keys(changes).length === 0)
    throw new CroreError('BAD_OPTION', 'update: nothing to change: give a payload, priority, delay or at');
  return changes;
}

function resolveSpec(queue: string, options: AddOptions, now: number): Spec {
  const {
    id,
    idWindow,
    attempts,
    retryFor,
    backoff,
    reservation,
    unique,
    needs,
    expires,
    keep,
    keepDead,
    group,
    headers,
    batch,
    batchPolicy,
    parent,
  } = options;
  const asked =
    attempts ??
    retryFor ??
    backoff ??
    reservation ??
    unique ??
    needs ??
    expires ??
    keep ??
    keepDead ??
    group ??
    headers ??
    idWindow ??
    batch ??
    batchPolicy ??
    parent;
  if (asked === undefined) return id === undefined ? DEFAULT_SPEC : NAMED_SPEC;
  if (batchPolicy !== undefined && needs !== undefined && needs.length > 0)
    throw new CroreError('BAD_OPTION', 'add: the job of a batch waits for its members, and cannot have needs');
  const kept = keep || keepDead ? resolveKeeps(keep, keepDead) : DEFAULT_SPEC.keep;
  return sharedSpec({
    idWindow: id === undefined ? undefined : resolveIdWindow(idWindow, kept.done),
    attempts:
      attempts === undefined
        ? retryFor === undefined
          ? DEFAULT_SPEC.attempts
          : MOST_ATTEMPTS
        : checkInteger(attempts, 'attempts', 1, MOST_ATTEMPTS),
    backoff: backoff === undefined ? DEFAULT_BACKOFF : resolveBackoff(backoff),
    reservation: reservation === undefined ? 0 : Math.max(1, milliseconds(reservation, 'reservation')),
    expires: expires === undefined ? 0 : resolveExpiry(expires, now),
    ...(retryFor === undefined ? {} : { retryFor: milliseconds(retryFor, 'retryFor') + untilDue(options, now) }),
    keep: kept,
    headers: headers === undefined ? undefined : resolveHeaders(headers),
    group: group === undefined ? undefined : checkName(group, 'group'),
    unique: unique === undefined ? undefined : resolveUnique(unique),
    needs: needs === undefined || needs.length === 0 ? undefined : resolveNeeds(queue, needs),
    ...(batch === undefined ? {} : { batch: resolveRef(batch, 'batch') }),
    ...(batchPolicy === undefined
      ? {}
      : { batchPolicy: checkOneOf<BatchPolicy>(batchPolicy, 'batchPolicy', ['finished', 'failure']) }),
    ...(parent === undefined ? {} : { parent: resolveRef(parent, 'parent') }),
  });
}

/** Also takes an object that has more, such as a handle. */
function resolveRef(ref: JobRef, what: string): JobRef {
  if (ref === null || typeof ref !== 'object')
    throw new CroreError('BAD_OPTION', `${what} must be an object with a queue and an id, not ${describe(ref)}`);
  return { queue: checkName(ref.queue, `${what}: queue name`), id: checkName(ref.id, `${what}: job id`) };
}

/** How long after it is added a job is due. */
function untilDue({ delay, at }: AddOptions, now: number): number {
  if (at !== undefined) return Math.max(0, moment(at, 'at') - now);
  return delay === undefined ? 0 : milliseconds(delay, 'delay');
}

/** With no retention, ids are free at once, unless the window says otherwise. */
function resolveIdWindow(idWindow: Duration | undefined, done: Keep): number | undefined {
  const ms = idWindow === undefined ? (done.count === 0 ? 0 : done.ms) : milliseconds(idWindow, 'idWindow');
  return ms === 0 ? undefined : ms;
}

function moment(value: Date | number, what: string): number {
  const time = value instanceof Date ? value.getTime() : value;
  if (typeof time !== 'number' || !Number.isFinite(time) || time < 0 || time > 8.64e15) {
    throw new CroreError('BAD_OPTION', `${what} must be a Date or milliseconds since 1970, not ${describe(value)}`);
  }
  return Math.round(time);
}

export function resolveBackoff(backoff: Duration | BackoffOptions): Backoff {
  if (typeof backoff !== 'object') return { kind: 'fixed', delay: milliseconds(backoff, 'backoff') };
  const kind = checkOneOf(backoff?.kind, 'backoff.kind', ['fixed', 'exponential', 'quartic']);
  const time = (value: Duration | undefined, what: string, fallback: number) =>
    value === undefined ? fallback : milliseconds(value, `backoff.${what}`);
  switch (kind) {
    case 'fixed': {
      checkOptions(backoff, ['kind', 'delay'], 'backoff');
      return { kind, delay: milliseconds((backoff as { delay: Duration }).delay, 'backoff.delay') };
    }
    case 'exponential': {
      checkOptions(backoff, ['kind', 'delay', 'factor', 'cap', 'jitter'], 'backoff');
      const { delay, factor = 2, cap, jitter = 0.2 } = backoff as Extract<BackoffOptions, { kind: 'exponential' }>;
      checkRange(factor, 'backoff.factor', 1, 100);
      checkRange(jitter, 'backoff.jitter', 0, 1);
      return { kind, delay: time(delay, 'delay', 1_000), factor, cap: time(cap, 'cap', 3_600_000), jitter };
    }
    case 'quartic': {
      checkOptions(backoff, ['kind', 'base', 'jitter', 'cap'], 'backoff');
      const { base, jitter, cap } = backoff as Extract<BackoffOptions, { kind: 'quartic' }>;
      return {
        kind,
        base: time(base, 'base', 15_000),
        jitter: time(jitter, 'jitter', 30_000),
        cap: time(cap, 'cap', 30 * 86_400_000),
      };
    }
  }
}

function checkRange(value: unknown, what: string, low: number, high: number): void {
  if (typeof value !== 'number' || !(value >= low && value <= high)) {
    throw new CroreError('BAD_OPTION', `${what} must be a number from ${low} to ${high}, not ${describe(value)}`);
  }
}

function resolveExpiry(expires: Duration | Date, now: number): number {
  if (expires instanceof Date) return Math.max(1, moment(expires, 'expires') - now);
  return Math.max(1, milliseconds(expires, 'expires'));
}

function resolveKeeps(done: KeepOptions | undefined, dead: KeepOptions | undefined): Spec['keep'] {
  return {
    done: resolveKeep(done, DEFAULT_SPEC.keep.done, 'keep'),
    dead: resolveKeep(dead, DEFAULT_SPEC.keep.dead, 'keepDead'),
  };
}

function resolveKeep(keep: KeepOptions | undefined, fallback: Keep, what: string): Keep {
  if (keep === undefined) return fallback;
  checkOptions(keep, ['for', 'count'], what);
  return {
    ms: keep.for === undefined ? fallback.ms : milliseconds(keep.for, `${what}.for`),
    count: keep.count === undefined ? fallback.count : checkInteger(keep.count, `${what}.count`, 0),
  };
}

function resolveHeaders(headers: Record<string, string>): Record<string, string> {
  if (headers === null || typeof headers !== 'object' || Array.isArray(headers)) {
    throw new CroreError('BAD_OPTION', `headers must be an object of strings, not ${describe(headers)}`);
  }
  let size = 0;
  for (const [key, value] of Object.entries(headers)) {
    if (typeof value !== 'string')
      throw new CroreError('BAD_OPTION', `header '${key}' must be a string, not ${describe(value)}`);
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (size > HEADER_LIMIT)
    throw new CroreError('PAYLOAD_TOO_LARGE', `headers are ${size} bytes, the limit is ${HEADER_LIMIT}`);
  return { ...headers };
}

function resolveUnique(unique: string | UniqueOptions): Unique {
  if (typeof unique === 'string') return { key: checkName(unique, 'unique key'), scope: 'alive', ttl: 0 };
  checkOptions(unique, ['key', 'scope', 'ttl', 'mode'], 'unique');
  const scope =
    unique.scope === undefined ? 'alive' : checkOneOf(unique.scope, 'unique.scope', ['waiting', 'alive', 'window']);
  const ttl = unique.ttl === undefined ? 0 : milliseconds(unique.ttl, 'unique.ttl');
  if (scope === 'window' && ttl === 0) throw new CroreError('BAD_OPTION', "unique.scope 'window' needs a ttl");
  const resolved: Unique = { key: checkName(unique.key, 'unique.key'), scope, ttl };
  if (unique.mode === undefined) return resolved;
  return { ...resolved, mode: checkOneOf<UniqueMode>(unique.mode, 'unique.mode', ['keep', 'extend', 'replace']) };
}

function resolveNeeds(queue: string, needs: readonly (string | NeedOptions)[]): Need[] {
  if (!Array.isArray(needs)) throw new CroreError('BAD_OPTION', `needs must be an array, not ${describe(needs)}`);
  const byUpstream = new Map<string, Need>();
  for (const need of needs as readonly (string | NeedOptions)[]) {
    const asked = typeof need === 'string' ? { id: need } : need;
    checkOptions(asked, ['id', 'queue', 'on'], 'needs');
    const resolved: Need = {
      id: checkName(asked.id, 'needs: job id'),
      queue: asked.queue === undefined ? queue : checkName(asked.queue, 'needs: queue name'),
      on: asked.on === undefined ? 'success' : checkOneOf(asked.on, 'needs.on', ['success', 'finished']),
    };
    byUpstream.set(`${resolved.queue}\0${resolved.id}`, resolved);
  }
  return [...byUpstream.values()];
}
