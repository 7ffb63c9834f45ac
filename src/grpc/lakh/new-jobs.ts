import { checkName } from '../../engine/input/check.js';
import { newId } from '../../job/id.js';
import type { NewJob, Spec } from '../../job/job.js';
import { DEFAULT_SPEC } from '../../job/spec.js';
import type { LakhPolicy } from '../context.js';
import { CallError } from '../status.js';
import { executionHeaders } from './execution-time.js';
import type { WireJob, WireTime } from './reader.js';

const LONGEST_DURATION = 315_576_000_000;
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;
const MOST_SPECS = 1_000;

/** Converts received jobs into jobs for the store, or reports what is wrong with them. */
export class NewJobReader {
  /** Jobs with the same reservation share their spec. */
  readonly #specs = new Map<number, Spec>();

  constructor(private readonly policy: LakhPolicy) {}

  job(wire: WireJob, names: ReadonlySet<string>, now: () => number): NewJob {
    if (wire.name === '') throw new CallError('INVALID_ARGUMENT', `${called(wire)} has no name`);
    if (!names.has(wire.name)) {
      const name = wire.name.slice(0, 80);
      throw new CallError('INVALID_ARGUMENT', `${called(wire)} is named '${name}', which is not in job_names`);
    }
    const fresh = wire.id === '';
    const shared = this.#spec(wire.reservation ? reservationOf(wire.reservation, wire) : 0);
    return {
      id: fresh ? newId(now()) : checkName(wire.id, 'job id'),
      fresh,
      payload: wire.args,
      priority: 0,
      delay: wire.delayed && delayOf(wire.delayed, wire),
      at: wire.scheduled && momentOf(wire.scheduled, wire),
      spec: waits(wire) ? { ...shared, headers: waits(wire) } : shared,
    };
  }

  #spec(reservation: number): Spec {
    const known = this.#specs.get(reservation);
    if (known) return known;
    const { maxRetry, backoff } = this.policy;
    const spec = Object.freeze({ ...DEFAULT_SPEC, attempts: maxRetry, backoff, reservation });
    if (this.#specs.size >= MOST_SPECS) this.#specs.clear();
    this.#specs.set(reservation, spec);
    return spec;
  }
}

function waits({ delayed, scheduled }: WireJob): Record<string, string> | undefined {
  if (delayed) return executionHeaders('delayed', delayed);
  return scheduled && executionHeaders('scheduled', scheduled);
}

function called({ id }: WireJob): string {
  return id === '' ? 'a job without id' : `job '${id.slice(0, 80)}'`;
}

/** Milliseconds, rounded up: a wait must not be shorter than requested. */
function durationOf({ seconds, nanos }: WireTime, job: WireJob, what: string): number {
  const possible = Math.abs(seconds) <= LONGEST_DURATION && Math.abs(nanos) < 1e9 && seconds * nanos >= 0;
  if (!possible) {
    const time = `${seconds} s and ${nanos} ns`;
    throw new CallError('INVALID_ARGUMENT', `${called(job)}: ${what}: ${time} is not a duration`);
  }
  return seconds * 1_000 + Math.ceil(nanos / 1e6);
}

function delayOf(time: WireTime, job: WireJob): number {
  return Math.max(0, durationOf(time, job, 'delayed'));
}

function reservationOf(time: WireTime, job: WireJob): number {
  const ms = durationOf(time, job, 'reservation_time');
  if (ms < 0 || time.nanos < 0) throw new CallError('INVALID_ARGUMENT', `${called(job)}: reservation_time is negative`);
  return ms;
}

function momentOf({ seconds, nanos }: WireTime, job: WireJob): number {
  if (seconds < FIRST_SECOND || seconds > LAST_SECOND || nanos < 0 || nanos >= 1e9) {
    const time = `${seconds} s and ${nanos} ns`;
    throw new CallError('INVALID_ARGUMENT', `${called(job)}: scheduled: ${time} is not a time`);
  }
  return Math.max(0, seconds * 1_000 + Math.ceil(nanos / 1e6));
}
