import type { Body, Job, NewJob, State } from '../../../job/job.js';
import { readError } from '../../../job/reported-error.js';
import { DEFAULT_SPEC, decodeSpec, encodeSpec, FORGETFUL_SPEC, keepOf } from '../../../job/spec.js';

/**
 * The record of a job, written once: a flags character, nine base-36 digits of creation time, then, depending on the
 * flags, `<reservation>;`, `<length>;<unique key>`, `<length>;<group>`, `<length>;<spec JSON>`, and finally the
 * unchanged payload. Everything except a binary payload is text, so that a batch of JSON jobs reaches the client
 * library as plain strings (mixing in Buffers costs a third more per job).
 */
const RESERVED = 1;
const UNIQUE_WAITING = 2;
const SPEC = 4;
const BYTES = 8;
/** Short form for a plain job that is removed when done. */
const FORGET = 16;
const GROUP = 32;
const HEAD = 10;
const AT = 64;
/** Places of jobs with a priority begin here: see enqueue_job.lua. */
const FIRST_PLACE = 40_000_000_000_000;
const TWO_NULS = Buffer.from('\0\0');

let stampedAt = -1;
let stamp = '';

function createdText(at: number): string {
  if (at !== stampedAt) {
    stampedAt = at;
    stamp = Math.max(0, Math.floor(at)).toString(36).padStart(9, '0');
  }
  return stamp;
}

export function encodeRecord(job: NewJob, createdAt: number): string | Buffer {
  const { spec, payload } = job;
  let flags = 0;
  let extra = '';
  if (spec === FORGETFUL_SPEC) {
    flags = FORGET;
  } else if (spec !== DEFAULT_SPEC) {
    if (spec.reservation > 0) {
      flags |= RESERVED;
      extra += `${spec.reservation};`;
    }
    if (spec.unique?.scope === 'waiting') {
      flags |= UNIQUE_WAITING;
      extra += counted(spec.unique.key);
    }
    if (spec.group !== undefined) {
      flags |= GROUP;
      extra += counted(spec.group);
    }
    const text = encodeSpec(spec);
    if (text !== '') {
      flags |= SPEC;
      extra += counted(text);
    }
  }
  if (typeof payload === 'string') return String.fromCharCode(48 + flags) + createdText(createdAt) + extra + payload;
  const head = String.fromCharCode(48 + (flags | BYTES)) + createdText(createdAt) + extra;
  return Buffer.concat([Buffer.from(head), payload]);
}

function counted(text: string): string {
  return `${Buffer.byteLength(text)};${text}`;
}

/** Decodes a job from its record and run. `run` is empty for a new job that waits. */
export function decodeJob(queue: string, id: string, record: Buffer, run: Buffer | null, state?: State): Job {
  const job = decodeRecord(queue, id, record, 0, record.length);
  if (state === 'active' && run) applyActive(job, run.toString());
  else if (run !== null && run.length > 0) applyRun(job, run);
  return job;
}

/** Decodes the waiting job whose record is at `start` to `end` of a buffer. */
export function decodeRecord(queue: string, id: string, buffer: Buffer, start: number, end: number): Job {
  const flags = buffer[start]! - 48;
  let at = start + HEAD;
  let spec = flags & FORGET ? FORGETFUL_SPEC : DEFAULT_SPEC;
  if (flags & (RESERVED | UNIQUE_WAITING | GROUP | SPEC)) {
    const number = (): number => {
      const cut = buffer.indexOf(59, at);
      const value = Number(buffer.toString('latin1', at, cut));
      at = cut + 1;
      return value;
    };
    if (flags & RESERVED) number();
    if (flags & UNIQUE_WAITING) {
      const size = number();
      at += size;
    }
    if (flags & GROUP) {
      const size = number();
      at += size;
    }
    if (flags & SPEC) {
      const size = number();
      spec = decodeSpec(buffer.toString('utf8', at, at + size));
      at += size;
    }
  }
  return {
    queue,
    id,
    state: 'ready',
    payload: flags & BYTES ? Buffer.from(buffer.subarray(at, end)) : buffer.toString('utf8', at, end),
    priority: 0,
    attempt: 0,
    crashes: 0,
    createdAt: createdAt(buffer, start + 1),
    spec,
  };
}

function createdAt(buffer: Buffer, at: number): number {
  let value = 0;
  for (let i = at; i < at + HEAD - 1; i++) value = value * 36 + buffer[i]! - (buffer[i]! < 58 ? 48 : 87);
  return value;
}

/**
 * Parses `token crashes priority at worker`, where the token starts with the attempt, and possibly a group that is also
 * in the record.
 */
export function readActive(
  run: string,
): Required<Pick<Job, 'token' | 'crashes' | 'priority' | 'startedAt' | 'worker'>> {
  const [token, crashes, priority, at, ...worker] = run.split('\0', 1)[0]!.split(' ');
  return {
    token: token!,
    crashes: Number(crashes),
    priority: Number(priority),
    startedAt: Number(at),
    worker: worker.join(' '),
  };
}

function applyActive(job: Job, run: string): void {
  Object.assign(job, readActive(run), { state: 'active', attempt: Number.parseInt(run, 10) });
}

/** Applies `state attempt crashes priority at tail`, where the tail may be any bytes. */
export function applyRun(job: Job, run: Buffer): void {
  const cuts: number[] = [];
  for (let from = 0; cuts.length < 5; ) {
    const cut = run.indexOf(32, from);
    if (cut < 0) break;
    cuts.push(cut);
    from = cut + 1;
  }
  const head = run.toString('latin1', 0, cuts[4] ?? run.length).split(' ');
  const tail = run.subarray((cuts[4] ?? run.length) + 1);
  job.state = head[0] as State;
  job.attempt = Number(head[1]);
  job.crashes = Number(head[2]);
  job.priority = Number(head[3]);
  applyTail(job, Number(head[4]), tail);
}

function applyTail(job: Job, at: number, tail: Buffer): void {
  switch (job.state) {
    case 'done':
      job.finishedAt = at;
      applyDone(job, tail);
      return;
    case 'dead':
    case 'cancelled':
      job.finishedAt = at;
      job.error = tail.toString();
      return;
    case 'blocked':
      job.runAt = at;
      return;
    case 'scheduled':
      job.runAt = at;
      if (tail.length > 0) Object.assign(job, readError(tail.toString()));
      return;
    case 'ready':
      // jobs of other priorities have their place in the queue here
      if (at > 0 && at < FIRST_PLACE) job.runAt = at;
      if (tail.length > 0) Object.assign(job, readError(tail.toString()));
  }
}

/** Applies a result, after `@`, the run that the job had while it was active, and two NULs; old records have only the result. */
function applyDone(job: Job, tail: Buffer): void {
  const end = tail[0] === AT ? tail.indexOf(TWO_NULS) : -1;
  if (end >= 0) {
    const { startedAt, worker } = readActive(tail.toString('utf8', 1, end));
    Object.assign(job, { startedAt, worker });
  }
  const result = end < 0 ? tail : tail.subarray(end + TWO_NULS.length);
  if (result.length > 0) job.result = decodeBody(result);
}

/** Encodes a result for the tail of a run: a letter for its kind, then the result. */
export function encodeBody(body: Body | undefined): string | Buffer {
  if (body === undefined) return '';
  return typeof body === 'string' ? `j${body}` : Buffer.concat([Buffer.from('b'), body]);
}

function decodeBody(tail: Buffer): Body {
  return tail[0] === 98 ? tail.subarray(1) : tail.toString('utf8', 1, tail.length);
}

/** The tail of a blocked job's run, which is used if the job is skipped: cancelled, or dead if it waits for its children. */
export function skipTail(job: Pick<NewJob, 'spec'>, state: 'cancelled' | 'dead' = 'cancelled'): string {
  const keep = keepOf(job.spec, state);
  return `${keep.ms} ${keep.count}:${job.spec.idWindow ?? 0} ${freedKey(job) ?? ''}`;
}

/** The unique key that is freed when this job ends. */
export function freedKey(job: Pick<NewJob, 'spec'>): string | undefined {
  const { unique } = job.spec;
  return unique && unique.scope !== 'window' ? unique.key : undefined;
}
