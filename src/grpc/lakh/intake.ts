import { checkName } from '../../engine/check.js';
import { newId } from '../../job/id.js';
import type { NewJob, Spec } from '../../job/job.js';
import { DEFAULT_SPEC } from '../../job/spec.js';
import type { LakhPolicy } from '../context.js';
import { Refusal } from '../status.js';
import type { WireJob, WireTime } from './codec.js';

const LONGEST_DURATION = 315_576_000_000;
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;
const MOST_SPECS = 1_000;
/** Nothing that JSON would write otherwise than it is. */
const PLAIN = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

/** Turns what came in into jobs a store can take, or says what is wrong with it. */
export class Intake {
  /** Jobs with the same reservation share their spec. */
  readonly #specs = new Map<number, Spec>();

  constructor(private readonly policy: LakhPolicy) {}

  job(wire: WireJob, names: ReadonlySet<string>, now: number): NewJob {
    const what = wire.id === '' ? 'a job without id' : `job '${wire.id.slice(0, 80)}'`;
    if (wire.name === '') throw new Refusal('INVALID_ARGUMENT', `${what} has no name`);
    if (!names.has(wire.name))
      throw new Refusal('INVALID_ARGUMENT', `${what} is named '${wire.name.slice(0, 80)}', which is not in job_names`);
    const id = wire.id === '' ? newId(now) : checkName(wire.id, 'job id');
    return {
      id,
      fresh: wire.id === '',
      payload: listOf(wire.args),
      priority: 0,
      delay: wire.delayed && delayOf(wire.delayed, `${what}: delayed`),
      at: wire.scheduled && momentOf(wire.scheduled, `${what}: scheduled`),
      spec: this.#spec(wire.reservation ? reservationOf(wire.reservation, `${what}: reservation_time`) : 0),
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

/** A JSON array; most texts have nothing in them that needs an escape. */
function listOf(args: readonly string[]): string {
  for (const arg of args) if (!PLAIN.test(arg)) return JSON.stringify(args);
  return args.length === 0 ? '[]' : `["${args.join('","')}"]`;
}

/** Milliseconds, upwards: a wait must not be shorter than asked. */
function durationOf({ seconds, nanos }: WireTime, what: string): number {
  const possible = Math.abs(seconds) <= LONGEST_DURATION && Math.abs(nanos) < 1e9 && seconds * nanos >= 0;
  if (!possible) throw new Refusal('INVALID_ARGUMENT', `${what}: ${seconds} s and ${nanos} ns are not a duration`);
  return seconds * 1_000 + Math.ceil(nanos / 1e6);
}

function delayOf(time: WireTime, what: string): number {
  return Math.max(0, durationOf(time, what));
}

function reservationOf(time: WireTime, what: string): number {
  const ms = durationOf(time, what);
  if (ms < 0 || time.nanos < 0) throw new Refusal('INVALID_ARGUMENT', `${what} is negative`);
  return ms;
}

function momentOf({ seconds, nanos }: WireTime, what: string): number {
  if (seconds < FIRST_SECOND || seconds > LAST_SECOND || nanos < 0 || nanos >= 1e9)
    throw new Refusal('INVALID_ARGUMENT', `${what}: ${seconds} s and ${nanos} ns are not a time`);
  return Math.max(0, seconds * 1_000 + Math.ceil(nanos / 1e6));
}
