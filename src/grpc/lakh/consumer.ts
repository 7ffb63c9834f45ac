import { decodeValue } from '../../engine/input/payload.js';
import { failure } from '../../engine/tokenless-report.js';
import type { Entry, Job } from '../../job/job.js';
import { finish } from '../../job/transitions.js';
import { Deadlines } from '../../worker/deadlines.js';
import { ClaimSize } from '../claims/claim-size.js';
import type { ServerContext } from '../context.js';
import type { Call } from '../http2/call.js';
import { FrameReader } from '../http2/frames.js';
import { CallError, statusOf } from '../status.js';
import type { DeliveredJob, Dispatcher, JobReceiver } from './dispatcher.js';
import { executionTimeOf } from './execution-time.js';
import { readResult, type WireResult } from './reader.js';
import { Window } from './window.js';
import { JobWriter } from './writer.js';

/** Maximum number of unreported jobs of a worker, however fast it reports. */
const MOST_UNREPORTED = 2_000;
/** How many jobs may be in flight to a worker, at first and at most; the number grows with what the worker reads. */
const FIRST_FLYING = 4;
const MOST_FLYING = 512;
/** How many bytes a worker may leave unread. */
const MOST_BYTES = 256 * 1024;

interface Hooks {
  /** Called when the stream is over. */
  left: (consumer: Consumer) => void;
  /** Called for a report about a name that this worker does not offer. */
  foreign: (result: WireResult) => void;
}

/** Jobs that were written together. */
interface Flight {
  dispatcher: Dispatcher;
  entries: Entry[];
  writtenAt: number;
}

/** A worker's stream: delivers jobs as the worker has room, and receives its reports. */
export class Consumer implements JobReceiver {
  asked = 0;
  readonly #window = new Window(MOST_UNREPORTED);
  readonly #claimSize = new ClaimSize(MOST_BYTES);
  readonly #writer = new JobWriter();
  readonly #deadlines = new Deadlines<DeliveredJob>((held) => this.#expire(held));
  readonly #out = new Set<DeliveredJob>();
  /**
   * Written but not yet sent, oldest first: returned to the queue when the worker disconnects first, or does not read for too
   * long.
   */
  readonly #flying = new Set<Flight>();
  /** Returned because the worker did not read: it gets nothing new until it has read these. */
  readonly #stalled = new Set<Flight>();
  #flyingCount = 0;
  #mostFlying = FIRST_FLYING;
  #stallTimer: NodeJS.Timeout | undefined;
  #counted = 0;
  #lastAt = 0;
  #leaving = false;
  #turn = 0;

  constructor(
    private readonly context: ServerContext,
    private readonly call: Call,
    private readonly dispatchers: ReadonlyMap<string, Dispatcher>,
    private readonly hooks: Hooks,
  ) {
    const reader = new FrameReader({ limit: context.limits.message, budget: call.budget }, (buffer, start, end) =>
      this.#onSignal(readResult(buffer, start, end)),
    );
    call.open();
    call.stream.once('close', () => reader.close());
    call.listen((chunk) => {
      this.#read(reader, chunk);
      this.#rest();
    });
    call.stream.once('end', () => void this.#goodbye());
    call.stream.once('close', () => this.#gone());
    call.onDeadline(() => this.#end(new CallError('DEADLINE_EXCEEDED', 'the deadline has passed')));
    for (const dispatcher of dispatchers.values()) dispatcher.add(this);
  }

  /** No delivered job is still to be reported. */
  get idle(): boolean {
    return this.#out.size === 0 && this.#flying.size === 0;
  }

  room(reserved: boolean): number {
    if (this.#leaving || this.call.ended || this.#stalled.size > 0) return 0;
    const fits = this.#claimSize.room(this.call.stream.writableLength, this.asked);
    const flying = this.#mostFlying - this.#flyingCount;
    const count = (reserved ? Math.min(flying, this.#window.size - this.#out.size) : flying) - this.asked;
    const room = Math.min(count, fits);
    if (room <= 1 || this.dispatchers.size === 1) return room;
    // A name with a backlog leaves room for the others.
    let busy = 0;
    for (const dispatcher of this.dispatchers.values()) if (!dispatcher.dry) busy += 1;
    return Math.ceil(room / Math.max(1, busy));
  }

  deliver(dispatcher: Dispatcher, entries: Entry[]): Entry[] {
    if (this.#leaving || this.call.ended) return entries;
    const back: Entry[] = [];
    const sent: Entry[] = [];
    for (const entry of entries) {
      const reservation = entry.job?.spec.reservation ?? 0;
      if (reservation > 0 && !this.#hold(dispatcher, entry as Entry & { job: Job }, reservation)) back.push(entry);
      else {
        this.#write(dispatcher.queue, entry, reservation);
        sent.push(entry);
      }
    }
    if (sent.length > 0) this.#send(dispatcher, sent);
    return back;
  }

  /** Accepts no more jobs; ends when everything is reported. */
  drain(): void {
    this.#leaving = true;
    if (this.idle) this.cut();
  }

  cut(): void {
    this.#end(new CallError('UNAVAILABLE', 'the server is shutting down'));
  }

  #write(queue: string, entry: Entry, reservation: number): void {
    const { job } = entry;
    const times = { execution: executionTimeOf(job), reservation };
    if (job && typeof job.payload === 'string')
      this.#writer.addStored(job.id, queue, job.payload, times, () => argsOf(entry));
    else this.#writer.add(job?.id ?? '', queue, argsOf(entry), times);
  }

  #hold(dispatcher: Dispatcher, { lease, job }: Entry & { job: Job }, reservation: number): boolean {
    if (this.#out.size >= this.#window.size) return false;
    const { attempt, crashes, priority, spec, id, worker, token } = job;
    const held: DeliveredJob = { lease, job: { attempt, crashes, priority, spec, id, worker, token }, receiver: this };
    if (this.#out.size === 0) this.#lastAt = performance.now();
    this.#out.add(held);
    dispatcher.held.set(id, held);
    this.#deadlines.set(held, reservation);
    this.#window.sent(reservation);
    return true;
  }

  #send(dispatcher: Dispatcher, entries: Entry[]): void {
    const flight = { dispatcher, entries, writtenAt: performance.now() };
    this.#flying.add(flight);
    this.#watchForStall();
    this.#flyingCount += entries.length;
    const bytes = this.#writer.take();
    this.#claimSize.seen(entries.length, bytes.length);
    this.call.send(bytes, (error) => {
      if (this.#flying.delete(flight)) {
        this.#flyingCount -= entries.length;
        this.#mostFlying = Math.min(MOST_FLYING, 2 * this.#mostFlying);
        if (error) this.#undo(flight);
        else for (const entry of entries) if (!isReserved(entry)) dispatcher.done(entry);
      } else if (!this.#stalled.delete(flight)) return;
      this.#freed();
    });
  }

  /** One timer for the oldest flight. */
  #watchForStall(): void {
    if (this.#stallTimer || this.#leaving) return;
    const [oldest] = this.#flying;
    if (!oldest) return;
    const wait = oldest.writtenAt + this.context.stall - performance.now();
    this.#stallTimer = setTimeout(
      () => {
        this.#stallTimer = undefined;
        this.#giveBackStalled();
        this.#watchForStall();
      },
      Math.max(1, wait),
    ).unref();
  }

  #giveBackStalled(): void {
    const limit = performance.now() - this.context.stall;
    const [oldest] = this.#flying;
    if (!oldest || oldest.writtenAt > limit) return;
    for (const flight of this.#flying) {
      this.#flying.delete(flight);
      this.#stalled.add(flight);
      this.#undo(flight);
    }
    this.#flyingCount = 0;
    this.#mostFlying = FIRST_FLYING;
  }

  /** Returns jobs that never left this server. */
  #undo({ dispatcher, entries }: Flight): void {
    for (const entry of entries) {
      const held = entry.job && dispatcher.held.get(entry.job.id);
      if (held?.receiver === this) this.#drop(dispatcher, held);
      dispatcher.giveBack(entry);
    }
  }

  #read(reader: FrameReader, chunk: Buffer): void {
    try {
      reader.read(chunk);
    } catch (error) {
      this.#end(error);
    }
  }

  /** Reports that arrived together count as one step of the window. */
  #rest(): void {
    if (this.#counted === 0) return;
    const now = performance.now();
    this.#window.reported(this.#counted, now - this.#lastAt, this.#out.size);
    this.#counted = 0;
    this.#lastAt = now;
    this.#freed();
  }

  #onSignal(result: WireResult): void {
    const dispatcher = this.dispatchers.get(result.name);
    if (!dispatcher) {
      this.hooks.foreign(result);
      return;
    }
    const held = dispatcher.held.get(result.id);
    if (!held) {
      if (result.id !== '') dispatcher.reporter.report({ id: result.id, ok: result.ok });
      return;
    }
    const report = { id: result.id, ok: result.ok };
    const { lease, job } = held;
    if (result.ok) {
      dispatcher.reporter.settle({ lease, outcome: finish(job), spec: job.spec, priority: job.priority, report });
    } else {
      const { random, store, failures } = this.context.engine;
      const settlement = failure(job, random, store.now());
      failures.settled(result.name, job, settlement);
      dispatcher.reporter.settle({ ...settlement, report });
    }
    if (held.receiver === this) this.#counted += 1;
    (held.receiver as Consumer).#drop(dispatcher, held);
    if (held.receiver !== this) (held.receiver as Consumer).#freed();
  }

  #expire(held: DeliveredJob): void {
    for (const dispatcher of this.dispatchers.values()) {
      if (dispatcher.held.get(held.job.id) === held) dispatcher.held.delete(held.job.id);
    }
    this.#out.delete(held);
    this.#window.expired();
    this.#freed();
  }

  #drop(dispatcher: Dispatcher, held: DeliveredJob): void {
    dispatcher.held.delete(held.job.id);
    this.#out.delete(held);
    this.#deadlines.delete(held);
  }

  /** There is room again: the names take turns using it. */
  #freed(): void {
    if (this.#leaving) {
      if (this.idle && !this.call.ended && !this.call.stream.readableEnded) this.cut();
      return;
    }
    const all = [...this.dispatchers.values()];
    this.#turn = (this.#turn + 1) % all.length;
    for (let i = 0; i < all.length; i++) all[(this.#turn + i) % all.length]!.pump();
  }

  /** The worker has sent its last report. */
  async #goodbye(): Promise<void> {
    this.#leaving = true;
    await Promise.all([...this.dispatchers.values()].map((dispatcher) => dispatcher.reporter.flushed()));
    this.call.end('OK');
  }

  #end(error: unknown): void {
    this.#leaving = true;
    const { status, message, code } = statusOf(error);
    if (status === 'INTERNAL') this.context.log.error({ err: error }, 'a worker could not be served');
    this.call.end(status, message, code);
  }

  #gone(): void {
    this.#leaving = true;
    clearTimeout(this.#stallTimer);
    for (const dispatcher of this.dispatchers.values()) dispatcher.remove(this);
    for (const flight of [...this.#flying]) {
      this.#flying.delete(flight);
      this.#undo(flight);
    }
    for (const held of this.#out) {
      for (const dispatcher of this.dispatchers.values()) {
        if (dispatcher.held.get(held.job.id) === held) dispatcher.held.delete(held.job.id);
      }
    }
    this.#out.clear();
    this.#deadlines.clear();
    this.hooks.left(this);
  }
}

function isReserved(entry: Entry): boolean {
  return entry.job !== undefined && entry.job.spec.reservation > 0;
}

/** A list of texts as it is; a payload from another interface as a single text. */
export function argsOf({
  job,
  task,
}: {
  job?: Pick<Job, 'payload'> | undefined;
  task?: Uint8Array | undefined;
}): string[] {
  const payload = job ? job.payload : task!;
  if (typeof payload !== 'string') return [Buffer.from(payload).toString()];
  if (payload.startsWith('[')) {
    const value = decodeValue(payload) as unknown[];
    if (value.every((one) => typeof one === 'string')) return value as string[];
  }
  return [payload];
}
