import { checkInteger, checkName, checkOneOf, checkOptions, describe } from '../engine/input/check.js';
import { CroreError } from '../errors.js';
import { type Duration, milliseconds } from '../job/duration.js';

/** Options of a worker. */
export interface WorkOptions {
  /** How many handlers run at once; default 1. */
  concurrency?: number;
  /** Computes the wait after a failed attempt, instead of the job's own curve. */
  backoff?: (attempt: number, error: unknown) => Duration;
  /** Form in which a handler gets the payload of a raw task: `bytes` (default), `text`, or parsed `json`. */
  tasks?: 'bytes' | 'text' | 'json';
  /** A worker without a heartbeat for this long is dead, and its jobs go to other workers; default 10 s. */
  lease?: Duration;
  /** Time between heartbeats; default 3 s, at most a third of the lease. */
  heartbeat?: Duration;
  /** Time between sweeps, which look for dead workers and due jobs; default 1 s, at most half of the lease. */
  sweep?: Duration;
  /** If the main loop makes no turn for this long, it counts as hung and the worker as dead; default 60 s. */
  hung?: Duration;
  /**
   * How many workers a job may crash before it becomes dead; default 3. With several workers on a queue in one process, the
   * largest number applies.
   */
  maxCrashes?: number;
  /** How long `close()` waits for running handlers before it returns their jobs to the queue; default 10 s. */
  grace?: Duration;
  /** Name of the worker; default: host, process id and some random characters. */
  name?: string;
  /**
   * Called for errors that cannot be reported to any caller: an unresponsive store, a lost lease. Default: prints a line to
   * stderr.
   */
  onError?: (error: Error, what: string) => void;
}

export interface ResolvedWorkOptions {
  concurrency: number;
  backoff: ((attempt: number, error: unknown) => Duration) | undefined;
  tasks: 'bytes' | 'text' | 'json';
  lease: number;
  heartbeat: number;
  sweep: number;
  hung: number;
  maxCrashes: number;
  grace: number;
  name: string | undefined;
  onError: ((error: Error, what: string) => void) | undefined;
}

const DEFAULTS = Object.freeze({
  concurrency: 1,
  tasks: 'bytes',
  lease: 10_000,
  heartbeatMs: 3_000,
  sweep: 1_000,
  hung: 60_000,
  maxCrashes: 3,
  grace: 10_000,
});

/** The longest delay a timer supports. */
const LONGEST = 2 ** 31 - 1;

export const WORK_KNOWN = [
  'concurrency',
  'backoff',
  'tasks',
  'lease',
  'heartbeat',
  'sweep',
  'hung',
  'maxCrashes',
  'grace',
  'name',
  'onError',
] as const;

export function resolveWorkOptions(options: WorkOptions = {}): ResolvedWorkOptions {
  checkOptions(options, WORK_KNOWN, 'work');
  const time = (value: Duration | undefined, what: string, fallback: number, least: number) => {
    const ms = value === undefined ? fallback : milliseconds(value, what);
    if (ms < least) throw new CroreError('BAD_OPTION', `${what} must be at least ${least} ms, not ${ms}`);
    if (ms > LONGEST) throw new CroreError('BAD_OPTION', `${what} must be at most ${LONGEST} ms, not ${ms}`);
    return ms;
  };
  const lease = time(options.lease, 'lease', DEFAULTS.lease, 100);
  const heartbeatMs = time(options.heartbeat, 'heartbeat', Math.min(DEFAULTS.heartbeatMs, Math.floor(lease / 3)), 10);
  if (heartbeatMs * 2 > lease)
    throw new CroreError('BAD_OPTION', `heartbeat (${heartbeatMs} ms) must be at most half of the lease (${lease} ms)`);
  // A sweep that finds the last one older than a lease only grants more time: rarer sweeps would never reclaim anything.
  const sweep = time(options.sweep, 'sweep', Math.min(DEFAULTS.sweep, Math.floor(lease / 3)), 10);
  if (sweep * 2 > lease) {
    throw new CroreError('BAD_OPTION', `sweep (${sweep} ms) must be at most half of the lease (${lease} ms)`);
  }
  return {
    concurrency: checkInteger(options.concurrency ?? DEFAULTS.concurrency, 'concurrency', 1, 100_000),
    backoff: checkFunction(options.backoff, 'backoff'),
    tasks: checkOneOf(options.tasks ?? DEFAULTS.tasks, 'tasks', ['bytes', 'text', 'json']),
    lease,
    heartbeat: heartbeatMs,
    sweep,
    hung: time(options.hung, 'hung', DEFAULTS.hung, 100),
    maxCrashes: checkInteger(options.maxCrashes ?? DEFAULTS.maxCrashes, 'maxCrashes', 1),
    grace: time(options.grace, 'grace', DEFAULTS.grace, 0),
    name: options.name === undefined ? undefined : checkName(options.name, 'worker name'),
    onError: harmless(checkFunction(options.onError, 'onError')),
  };
}

export function checkFunction<T>(value: T | undefined, what: string): T | undefined {
  if (value !== undefined && typeof value !== 'function') {
    throw new CroreError('BAD_OPTION', `${what} must be a function, not ${describe(value)}`);
  }
  return value;
}

/** Wraps a listener and swallows its exceptions: an error while reporting an error must not block a worker. */
export function harmless<T extends ((error: Error, what: string) => void) | undefined>(listener: T): T {
  if (!listener) return listener;
  return ((error, what) => {
    try {
      listener(error, what);
    } catch {
      // there is nobody left to report this to
    }
  }) as T;
}
