import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { checkName } from '../../engine/input/check.js';
import { CLAIMED_TASK } from '../../engine/raw-task.js';
import { CroreError } from '../../errors.js';
import type { Entry } from '../../job/job.js';
import type {
  WorkRequest,
  WorkRequest_Open,
  WorkRequest_Progress,
  WorkRequest_Settle,
  WorkResponseSchema,
} from '../../proto/crore/v1/crore_pb.js';
import { JobSchema } from '../../proto/crore/v1/job_pb.js';
import { fromBody, fromJob } from '../../store/grpc/codec.js';
import { fromMs, fromTime, toMs } from '../../store/grpc/times.js';
import { MAX_BATCH, type Settlement, type WorkerSession } from '../../store/store.js';
import { Session } from '../../worker/session.js';
import type { ServerContext } from '../context.js';
import { CallError } from '../status.js';
import { StreamQueue } from './queue-session.js';
import { checkProgress, checkToken, durationOf } from './requests.js';
import { ResponseQueue } from './response-queue.js';
import { settlementFor } from './settlements.js';

const SHORTEST_LEASE = 500;
const LONGEST_LEASE = 3_600_000;
const MOST_CREDIT = 10_000;
const HESITATION = 25;

type Response = MessageInitShape<typeof WorkResponseSchema>;

interface Held {
  queue: StreamQueue;
  entry: Entry;
}

/** A worker's stream: the worker says how many jobs it can take, and settles each with its token. */
export class WorkStream {
  readonly #responses = new ResponseQueue(() => this.#offer());
  readonly #held = new Map<string, Held>();
  #queues: StreamQueue[] = [];
  #lease = 0;
  #credit = 0;
  #asked = 0;
  #turn = 0;
  #seenAt = performance.now();
  #renewedAt = 0;
  #renewal: NodeJS.Timeout | undefined;
  #draining = false;
  /** The worker ended its side of the stream properly. */
  #clean = false;
  #over = false;

  constructor(
    private readonly context: ServerContext,
    private readonly from: string,
    private readonly left: (stream: WorkStream) => void,
  ) {}

  async *serve(requests: AsyncIterable<WorkRequest>, signal: AbortSignal): AsyncGenerator<Response> {
    void this.#read(requests, signal);
    const aborted = () => this.#responses.end();
    signal.addEventListener('abort', aborted);
    try {
      yield* this.#responses.messages();
    } finally {
      signal.removeEventListener('abort', aborted);
      this.#over = true;
      clearTimeout(this.#renewal);
      this.#responses.end();
      await this.#leave();
      this.left(this);
    }
  }

  /** Delivers nothing more; ends when everything held is settled. */
  drain(): void {
    this.#draining = true;
    if (this.#held.size === 0) this.cut();
  }

  cut(): void {
    this.#responses.end(new CallError('UNAVAILABLE', 'the server is shutting down'));
  }

  async #read(requests: AsyncIterable<WorkRequest>, signal: AbortSignal): Promise<void> {
    try {
      for await (const request of requests) {
        if (this.#over) return;
        await this.#take(request);
        await this.#responses.room();
      }
      // A broken stream ends its requests a moment before it reports the error.
      await new Promise((resolve) => setTimeout(resolve, HESITATION));
      this.#clean = !this.#over && !signal.aborted;
      this.#responses.end();
    } catch (error) {
      this.#responses.end(error);
    }
  }

  async #take(request: WorkRequest): Promise<void> {
    this.#seenAt = performance.now();
    if (request.open) await this.#open(request.open);
    else if (this.#queues.length === 0)
      throw new CroreError('BAD_OPTION', "the first message of a worker must have 'open'");
    if (request.settle.length > 0) await this.#settle(request.settle);
    for (const note of request.progress) await this.#note(note);
    this.#credit = Math.min(MOST_CREDIT, this.#credit + request.credit);
    await this.#heartbeat(request.heartbeat);
    this.#offer();
  }

  async #open({ queues, name, lease }: WorkRequest_Open): Promise<void> {
    if (this.#queues.length > 0) throw new CroreError('BAD_OPTION', 'the worker is already open');
    if (queues.length === 0) throw new CroreError('BAD_NAME', 'a worker needs at least one queue');
    if (queues.length > this.context.limits.names)
      throw new CroreError('BAD_OPTION', `${queues.length} queues, the limit is ${this.context.limits.names}`);
    for (const queue of queues) checkName(queue, 'queue name');
    this.#lease = durationOf(toMs(lease) ?? this.context.lease, 'lease', SHORTEST_LEASE, LONGEST_LEASE);
    const base = checkName(name === '' ? this.from : name, 'worker name').slice(0, 200);
    const worker = Session.nameFor(base);
    this.#queues = [...new Set(queues)].map((queue) => this.#queue(queue, base, worker));
    for (const queue of this.#queues) await queue.join();
    this.#renewedAt = performance.now();
    this.#responses.opened(worker, fromMs(this.#lease));
  }

  #queue(queue: string, name: string, worker: string): StreamQueue {
    this.context.keepSwept(queue);
    const stream = { name, worker, lease: this.#lease };
    return new StreamQueue(this.context, queue, stream, {
      reserve: () => this.#reserve(),
      deliver: (from, entries, reserved) => {
        this.#asked -= reserved;
        this.#deliver(from, entries);
      },
      cancelled: (token) => {
        if (this.#held.delete(token)) this.#responses.cancelled(token);
      },
      lost: (queue) => this.#lost(queue),
      reset: (queue) => void this.#compare(queue).catch(() => {}), // settling reveals the loss at the latest
    });
  }

  /** The session and its leases are lost: tells the worker to stop its jobs of this queue. */
  #lost(queue: StreamQueue): void {
    for (const [token, held] of this.#held) {
      if (held.queue !== queue) continue;
      this.#held.delete(token);
      this.#responses.cancelled(token);
    }
  }

  /** Jobs that the store no longer counts as held here were cancelled or taken away while signals were missed. */
  async #compare(queue: StreamQueue): Promise<void> {
    const before = [...this.#held].filter(([, held]) => held.queue === queue).map(([token]) => token);
    if (before.length === 0) return;
    const leases = await this.context.engine.store.leasesOf(queue.queue, queue.session.worker);
    const theirs = new Set(leases.map(({ token }) => token));
    for (const token of before) {
      if (!theirs.has(token) && this.#held.delete(token)) this.#responses.cancelled(token);
    }
  }

  /** There may be room: the queues take turns using it. */
  #offer(): void {
    const { length } = this.#queues;
    if (length === 0 || this.#over || this.#draining) return;
    this.#turn = (this.#turn + 1) % length;
    for (let i = 0; i < length; i++) this.#queues[(this.#turn + i) % length]!.offer();
  }

  /** Room for the jobs of a claim; none for a worker that has sent nothing for a whole lease. */
  #reserve(): number {
    if (this.#over || this.#draining) return 0;
    if (performance.now() - this.#seenAt > this.#lease) return 0;
    const room = Math.min(this.#credit - this.#asked, this.#responses.space(this.#asked), MAX_BATCH / 2);
    if (room <= 0) return 0;
    this.#asked += room;
    return room;
  }

  #deliver(queue: StreamQueue, entries: Entry[]): void {
    if (entries.length === 0) return;
    if (this.#over) {
      queue.giveBack(entries);
      return;
    }
    this.#credit -= entries.length;
    const now = this.context.engine.store.now();
    for (const { job } of entries) if (job) job.startedAt ??= now;
    for (const entry of entries) this.#held.set(entry.lease.token, { queue, entry: withoutPayload(entry) });
    this.#responses.jobs(entries.map((entry) => this.#job(queue, entry)));
  }

  #job(queue: StreamQueue, { lease, job, task }: Entry) {
    if (job) return fromJob(job);
    const { token, worker } = lease;
    const now = fromTime(this.context.engine.store.now());
    const raw = { queue: queue.queue, token, worker, attempt: 1, state: 4, startedAt: now };
    return create(JobSchema, { ...raw, payload: fromBody(task), options: { raw: true } });
  }

  async #settle(settles: readonly WorkRequest_Settle[]): Promise<void> {
    const { engine, limits } = this.context;
    const judge = { random: engine.random, now: () => engine.store.now(), limit: limits.message };
    const bySource = new Map<StreamQueue, Settlement[]>();
    for (const settle of settles) {
      const held = this.#held.get(checkToken(settle.token));
      if (!held) {
        this.#responses.settled(settle.token, false);
        continue;
      }
      const settlement = settlementFor(held.entry, settle, { ...judge, queue: held.queue.queue });
      const { job = { ...CLAIMED_TASK, id: 'a task' } } = held.entry;
      engine.failures.settled(held.queue.queue, job, settlement);
      this.#held.delete(settle.token);
      const known = bySource.get(held.queue);
      if (known) known.push(settlement);
      else bySource.set(held.queue, [settlement]);
    }
    await Promise.all([...bySource].map(([queue, all]) => this.#settleAll(queue, all)));
    if (this.#draining && this.#held.size === 0) this.cut();
  }

  async #settleAll(queue: StreamQueue, settlements: Settlement[]): Promise<void> {
    const { store } = this.context.engine;
    for (let i = 0; i < settlements.length; i += MAX_BATCH) {
      const page = settlements.slice(i, i + MAX_BATCH);
      const applied = await store.settle(queue.queue, page);
      page.forEach(({ lease }, k) => void this.#responses.settled(lease.token, applied[k]!));
    }
  }

  async #note({ token, progress, log }: WorkRequest_Progress): Promise<void> {
    const held = this.#held.get(checkToken(token));
    if (!held) return;
    if (progress !== undefined) checkProgress(progress, this.context.limits.message);
    const line = log === undefined ? undefined : `${log.replaceAll('\n', ' ')}\n`;
    await this.context.engine.store.recordProgress(held.queue.queue, held.entry.lease, { progress, log: line });
  }

  /** Every message counts as a sign of life; it renews the sessions at once, or a quarter of a lease after the last renewal. */
  async #heartbeat(asked: boolean): Promise<void> {
    const wait = this.#renewedAt + this.#lease / 4 - performance.now();
    if (wait <= 0) await this.#renew();
    else this.#renewal ??= setTimeout(() => void this.#renew().catch(() => {}), wait).unref(); // the next message tries again
    if (asked) this.#responses.heartbeat();
  }

  async #renew(): Promise<void> {
    clearTimeout(this.#renewal);
    this.#renewal = undefined;
    if (this.#over) return;
    const sessions: WorkerSession[] = this.#queues.map(({ session }) => session);
    const alive = await this.context.engine.store.heartbeat(sessions);
    this.#renewedAt = performance.now();
    for (const [i, queue] of this.#queues.entries()) {
      if (!alive[i] && !this.#over && queue.session === sessions[i]) await queue.rejoin();
    }
  }

  /**
   * After a proper end everything held goes back at once; otherwise jobs that were sent keep their leases, because the worker
   * may still be working on them.
   */
  async #leave(): Promise<void> {
    for (const token of this.#clean ? this.#held.keys() : this.#responses.unsent()) {
      const held = this.#held.get(token);
      if (held) held.queue.giveBack([held.entry]);
    }
    this.#held.clear();
    await Promise.all(this.#queues.map((queue) => queue.leave()));
  }
}

/** What settling needs: a job's payload is in the store, and only a raw task may have to be written again. */
function withoutPayload(entry: Entry): Entry {
  return entry.job ? { lease: entry.lease, job: { ...entry.job, payload: '' } } : entry;
}
