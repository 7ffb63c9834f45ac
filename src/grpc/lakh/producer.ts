import { chunks } from '../../engine/engine.js';
import type { NewJob } from '../../job/job.js';
import { MAX_BATCH } from '../../store/store.js';
import type { ServerContext } from '../context.js';
import type { Call } from '../http2/call.js';
import { FrameReader, frame } from '../http2/frames.js';
import { CallError, statusOf } from '../status.js';
import { jobNames } from './job-names.js';
import type { NewJobReader } from './new-jobs.js';
import { readJob } from './reader.js';

const EMPTY = frame(new Uint8Array(0));
/** How many jobs, and bytes of jobs, a stream may have in flight to the store before the server stops reading it. */
const MOST_JOBS = 8 * MAX_BATCH;
const MOST_BYTES = 8 * 1024 * 1024;
const MOST_AT_ONCE = 4 * 1024 * 1024;
/** How many batches of a stream may be in flight at once: what arrives meanwhile makes the next batch larger. */
const MOST_BATCHES = 2;

/** A producer's stream: adds jobs in the batches they arrive in, and responds after the last one. */
export class Producer {
  readonly #batches = new Map<string, NewJob[]>();
  readonly #names: ReadonlySet<string>;
  readonly #now = () => this.context.engine.store.now();
  #pending = 0;
  #bytes = 0;
  #accepted = 0;
  #failure: unknown;
  #scheduled = false;
  #under = 0;
  #over = false;
  #idle: (() => void) | undefined;

  constructor(
    private readonly context: ServerContext,
    private readonly newJobs: NewJobReader,
    private readonly call: Call,
  ) {
    this.#names = jobNames(call.rawHeaders, context.limits.names);
    for (const name of this.#names) context.keepSwept(name);
    const reader = new FrameReader({ limit: context.limits.message, budget: call.budget }, (buffer, start, end) =>
      this.#take(buffer, start, end),
    );
    call.stream.once('close', () => reader.close());
    call.listen((chunk) => {
      this.#read(reader, chunk);
      this.#rest();
    });
    call.stream.once('end', () => {
      if (reader.partial) this.#fail(new CallError('INVALID_ARGUMENT', 'the stream ended in the middle of a message'));
      else void this.#finish();
    });
    call.onDeadline(() => this.#fail(new CallError('DEADLINE_EXCEEDED', 'the deadline has passed')));
  }

  /** The server is shutting down and no longer waits. */
  cut(): void {
    this.#fail(new CallError('UNAVAILABLE', 'the server is shutting down'));
  }

  #read(reader: FrameReader, chunk: Buffer): void {
    if (this.#over) return;
    try {
      reader.read(chunk);
    } catch (error) {
      this.#fail(error);
    }
  }

  #rest(): void {
    this.#flushSoon();
    const full = this.#bytes > 0 && this.call.budget.isFull;
    if (this.#pending > MOST_JOBS || this.#bytes > MOST_BYTES || full) this.call.pause();
  }

  #take(buffer: Buffer, start: number, end: number): void {
    const wire = readJob(buffer, start, end);
    const job = this.newJobs.job(wire, this.#names, this.#now);
    const batch = this.#batches.get(wire.name);
    if (batch) batch.push(job);
    else this.#batches.set(wire.name, [job]);
    this.#pending += 1;
    this.#bytes += job.payload.length;
    this.call.budget.add(job.payload.length);
  }

  #flushSoon(): void {
    if (this.#scheduled || this.#batches.size === 0 || this.#under >= MOST_BATCHES) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      for (const [name, jobs] of this.#batches) void this.#add(name, jobs);
      this.#batches.clear();
    });
  }

  async #add(name: string, jobs: NewJob[]): Promise<void> {
    this.#under += 1;
    let bytes = 0;
    for (const job of jobs) bytes += job.payload.length;
    try {
      for (const page of bytes < MOST_AT_ONCE ? pages(jobs) : chunks(jobs, ({ payload }) => payload.length)) {
        await addAll(this.context, name, page);
        this.#accepted += page.length;
      }
    } catch (error) {
      this.#failure ??= error;
    }
    this.#under -= 1;
    this.#pending -= jobs.length;
    this.#bytes -= bytes;
    this.call.budget.release(bytes);
    if (this.#failure !== undefined) this.#fail(this.#failure);
    if (this.#pending < MOST_JOBS / 2 && this.#bytes < MOST_BYTES / 2) this.call.resume();
    this.#flushSoon();
    if (this.#pending === 0) this.#idle?.();
  }

  async #finish(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    await this.#settled();
    if (this.#failure !== undefined) {
      this.#refuse(this.#failure);
      return;
    }
    if (this.call.ended) return;
    this.call.send(EMPTY);
    this.call.end('OK');
  }

  /** Jobs received before the failure are added first, and counted. */
  #fail(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    void this.#settled().then(() => this.#refuse(error));
  }

  #refuse(error: unknown): void {
    const { status, message, code } = statusOf(error);
    if (status === 'INTERNAL') this.context.log.error({ err: error }, 'a producer could not be served');
    const jobs = this.#accepted === 1 ? '1 job' : `${this.#accepted} jobs`;
    this.call.end(status, `${message}; ${jobs} of this stream were accepted before`, code);
  }

  #settled(): Promise<void> {
    if (this.#pending === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle = resolve;
    });
  }
}

function pages(jobs: NewJob[]): NewJob[][] {
  if (jobs.length <= MAX_BATCH) return [jobs];
  const all: NewJob[][] = [];
  for (let i = 0; i < jobs.length; i += MAX_BATCH) all.push(jobs.slice(i, i + MAX_BATCH));
  return all;
}

/** Adds jobs; an id whose job is still alive counts as accepted, and an id whose job has ended can be reused. */
async function addAll({ engine: { store } }: ServerContext, name: string, jobs: NewJob[]): Promise<void> {
  const outcomes = await store.add(name, jobs);
  const known = jobs.filter((_job, i) => outcomes[i]!.outcome === 'duplicate');
  // Few ids repeat, and adding a job that may replace another costs more, so this is only the second attempt.
  if (known.length > 0)
    await store.add(
      name,
      known.map((job) => ({ ...job, replaceEnded: true })),
    );
}
