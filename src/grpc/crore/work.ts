import { randomBytes } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { checkName } from '../../engine/check.js';
import { CroreError } from '../../errors.js';
import type { Entry } from '../../job/job.js';
import type {
  WorkRequest,
  WorkRequest_Open,
  WorkRequest_Progress,
  WorkRequest_Settle,
} from '../../proto/crore/v1/crore_pb.js';
import { JobSchema } from '../../proto/crore/v1/job_pb.js';
import { fromBody, fromJob, fromMs, fromTime, toMs } from '../../store/grpc/codec.js';
import { type Beat, MAX_BATCH, type Settlement } from '../../store/store.js';
import type { ServerContext } from '../context.js';
import { Refusal } from '../status.js';
import { Outbox } from './outbox.js';
import { settlementOf } from './outcome.js';
import { checkToken, durationOf } from './requests.js';
import { Source } from './source.js';

const SHORTEST_LEASE = 500;
const LONGEST_LEASE = 3_600_000;
const MOST_CREDIT = 10_000;
const HESITATION = 25;

interface Held {
  source: Source;
  entry: Entry;
}

/** A worker's stream: it says how many jobs it can take, and settles each with its token. */
export class WorkStream {
  readonly #outbox = new Outbox(() => this.#claim());
  readonly #held = new Map<string, Held>();
  #sources: Source[] = [];
  #lease = 0;
  #credit = 0;
  #asked = 0;
  #turn = 0;
  #seenAt = performance.now();
  #beatAt = 0;
  #draining = false;
  /** The worker said goodbye. */
  #clean = false;
  #over = false;

  constructor(
    private readonly context: ServerContext,
    private readonly from: string,
    private readonly left: (stream: WorkStream) => void,
  ) {}

  async *serve(requests: AsyncIterable<WorkRequest>, signal: AbortSignal): AsyncGenerator<object> {
    void this.#read(requests, signal);
    const aborted = () => this.#outbox.end();
    signal.addEventListener('abort', aborted);
    try {
      yield* this.#outbox.messages();
    } finally {
      signal.removeEventListener('abort', aborted);
      this.#over = true;
      this.#outbox.end();
      await this.#leave();
      this.left(this);
    }
  }

  /** Hands out nothing more; ends when everything in hand is settled. */
  drain(): void {
    this.#draining = true;
    if (this.#held.size === 0) this.cut();
  }

  cut(): void {
    this.#outbox.end(new Refusal('UNAVAILABLE', 'the server is shutting down'));
  }

  async #read(requests: AsyncIterable<WorkRequest>, signal: AbortSignal): Promise<void> {
    try {
      for await (const request of requests) {
        if (this.#over) return;
        await this.#take(request);
        await this.#outbox.room();
      }
      // A stream that breaks off ends its requests a moment before it says so.
      await new Promise((resolve) => setTimeout(resolve, HESITATION));
      this.#clean = !this.#over && !signal.aborted;
      this.#outbox.end();
    } catch (error) {
      this.#outbox.end(error);
    }
  }

  async #take(request: WorkRequest): Promise<void> {
    this.#seenAt = performance.now();
    if (request.open) await this.#open(request.open);
    else if (this.#sources.length === 0)
      throw new CroreError('BAD_OPTION', "the first message of a worker must have 'open'");
    if (request.settle.length > 0) await this.#settle(request.settle);
    for (const note of request.progress) await this.#note(note);
    this.#credit = Math.min(MOST_CREDIT, this.#credit + request.credit);
    await this.#beat(request.beat);
    this.#claim();
  }

  async #open({ queues, name, lease }: WorkRequest_Open): Promise<void> {
    if (this.#sources.length > 0) throw new CroreError('BAD_OPTION', 'the worker is open already');
    if (queues.length === 0) throw new CroreError('BAD_NAME', 'a worker needs at least one queue');
    if (queues.length > this.context.limits.names)
      throw new CroreError('BAD_OPTION', `${queues.length} queues, the limit is ${this.context.limits.names}`);
    for (const queue of queues) checkName(queue, 'queue name');
    this.#lease = durationOf(toMs(lease) ?? this.context.lease, 'lease', SHORTEST_LEASE, LONGEST_LEASE);
    const base = checkName(name === '' ? this.from : name, 'worker name').slice(0, 200);
    const worker = `${base}-${randomBytes(4).toString('hex')}`;
    this.#sources = [...new Set(queues)].map((queue) => this.#source(queue, worker));
    for (const source of this.#sources) await source.join();
    this.#outbox.opened(worker, fromMs(this.#lease));
  }

  #source(queue: string, worker: string): Source {
    this.context.tend(queue);
    return new Source(this.context, queue, worker, this.#lease, {
      work: () => this.#claim(),
      cancelled: (token) => {
        if (this.#held.delete(token)) this.#outbox.cancelled(token);
      },
      lost: (source) => this.#lost(source),
      reset: (source) => void this.#compare(source).catch(() => {}), // settling tells, at the latest
    });
  }

  /** The session is gone and with it its leases: the worker is told to stop what it has of this queue. */
  #lost(source: Source): void {
    for (const [token, held] of this.#held) {
      if (held.source !== source) continue;
      this.#held.delete(token);
      this.#outbox.cancelled(token);
    }
  }

  /** What the store no longer counts as held here was cancelled or taken away while nobody could tell. */
  async #compare(source: Source): Promise<void> {
    const before = [...this.#held].filter(([, held]) => held.source === source).map(([token]) => token);
    if (before.length === 0) return;
    const leases = await this.context.engine.store.held(source.queue, source.session.worker);
    const theirs = new Set(leases.map(({ token }) => token));
    for (const token of before) {
      if (!theirs.has(token) && this.#held.delete(token)) this.#outbox.cancelled(token);
    }
  }

  /** The queues take turns; nothing is claimed for a worker that has not been heard of for a whole lease. */
  #claim(): void {
    if (this.#over || this.#draining) return;
    if (performance.now() - this.#seenAt > this.#lease) return;
    for (let i = 0; i < this.#sources.length; i++) {
      const room = Math.min(this.#credit - this.#asked, this.#outbox.space(this.#asked), MAX_BATCH / 2);
      if (room <= 0) return;
      this.#turn = (this.#turn + 1) % this.#sources.length;
      const source = this.#sources[this.#turn]!;
      if (!source.open) continue;
      this.#asked += room;
      void source.claim(room).then((entries) => {
        this.#asked -= room;
        this.#deliver(source, entries);
        if (entries.length > 0 || source.open) this.#claim();
      });
    }
  }

  #deliver(source: Source, entries: Entry[]): void {
    if (entries.length === 0) return;
    if (this.#over) {
      source.giveBack(entries);
      return;
    }
    this.#credit -= entries.length;
    for (const entry of entries) this.#held.set(entry.lease.token, { source, entry: withoutPayload(entry) });
    this.#outbox.jobs(entries.map((entry) => this.#job(source, entry)));
  }

  #job(source: Source, { lease, job, task }: Entry) {
    if (job) return fromJob(job);
    const { token, worker } = lease;
    const now = fromTime(this.context.engine.store.now());
    const raw = { queue: source.queue, token, worker, attempt: 1, state: 4, startedAt: now };
    return create(JobSchema, { ...raw, payload: fromBody(task), options: { raw: true } });
  }

  async #settle(settles: readonly WorkRequest_Settle[]): Promise<void> {
    const { engine, limits } = this.context;
    const judge = { random: engine.random, now: () => engine.store.now(), limit: limits.message };
    const bySource = new Map<Source, Settlement[]>();
    for (const settle of settles) {
      const held = this.#held.get(checkToken(settle.token));
      if (!held) {
        this.#outbox.settled(settle.token, false);
        continue;
      }
      const settlement = settlementOf(held.entry, settle, judge);
      this.#held.delete(settle.token);
      const known = bySource.get(held.source);
      if (known) known.push(settlement);
      else bySource.set(held.source, [settlement]);
    }
    await Promise.all([...bySource].map(([source, all]) => this.#settleAll(source, all)));
    if (this.#draining && this.#held.size === 0) this.cut();
  }

  async #settleAll(source: Source, settlements: Settlement[]): Promise<void> {
    const { store } = this.context.engine;
    for (let i = 0; i < settlements.length; i += MAX_BATCH) {
      const page = settlements.slice(i, i + MAX_BATCH);
      const applied = await store.settle(source.queue, page);
      page.forEach(({ lease }, k) => void this.#outbox.settled(lease.token, applied[k]!));
    }
  }

  async #note({ token, progress, log }: WorkRequest_Progress): Promise<void> {
    const held = this.#held.get(checkToken(token));
    if (!held) return;
    if (progress !== undefined) {
      try {
        JSON.parse(progress);
      } catch {
        throw new CroreError('BAD_PAYLOAD', 'progress is not JSON');
      }
    }
    const line = log === undefined ? undefined : `${log.replaceAll('\n', ' ')}\n`;
    await this.context.engine.store.note(held.source.queue, held.entry.lease, { progress, log: line });
  }

  /** Every message is a sign of life, passed on a few times per lease. */
  async #beat(asked: boolean): Promise<void> {
    const now = performance.now();
    if (now - this.#beatAt > this.#lease / 4) {
      this.#beatAt = now;
      const sessions: Beat[] = this.#sources.map(({ session }) => session);
      const alive = await this.context.engine.store.beat(sessions);
      for (const [i, source] of this.#sources.entries()) if (!alive[i]) await source.rejoin();
    }
    if (asked) this.#outbox.beat();
  }

  /** After a proper goodbye everything in hand goes back at once; else what was sent keeps its leases, for it may still be worked on. */
  async #leave(): Promise<void> {
    for (const token of this.#clean ? this.#held.keys() : this.#outbox.unsent()) {
      const held = this.#held.get(token);
      if (held) held.source.giveBack([held.entry]);
    }
    this.#held.clear();
    await Promise.all(this.#sources.map((source) => source.leave()));
  }
}

/** What settling needs: the payload of a job is in the store, and only a raw task may have to be written again. */
function withoutPayload(entry: Entry): Entry {
  return entry.job ? { lease: entry.lease, job: { ...entry.job, payload: '' } } : entry;
}
