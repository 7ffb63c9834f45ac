import { hostname } from 'node:os';
import { CLAIMED_TASK, returnLease, settlementOf } from '../../engine/raw-task.js';
import { newId } from '../../job/id.js';
import type { Entry, Job, Lease } from '../../job/job.js';
import { finish } from '../../job/transitions.js';
import { type Claim, MAX_BATCH, SERVER_SESSION, type WorkerSession } from '../../store/store.js';
import { LiveSession } from '../../worker/live-session.js';
import { returnLostClaim } from '../claims/lost-claims.js';
import type { Claimant, QueueClaims } from '../claims/queue-claims.js';
import type { ServerContext } from '../context.js';
import { Reporter } from './reporter.js';

/** A main loop that makes no turn for this long counts as hung. */
const HUNG = 60_000;
/** Maximum number of entries in one claim. */
const MOST = Math.min(1_000, MAX_BATCH);

/** What is kept of a job until its report arrives: enough to settle it, without its payload. */
export interface DeliveredJob {
  lease: Lease;
  job: Pick<Job, 'attempt' | 'crashes' | 'priority' | 'spec' | 'id' | 'worker' | 'token'>;
  receiver: JobReceiver;
}

/** A worker's stream, as a dispatcher sees it. */
export interface JobReceiver {
  /** How many more jobs it can take now. */
  room(reserved: boolean): number;
  /** Room reserved for a claim in flight. */
  asked: number;
  /** Accepts entries; returns those it cannot take. */
  deliver(dispatcher: Dispatcher, entries: Entry[]): Entry[];
}

/** How many jobs a claim is to bring for a receiver. */
interface Share {
  receiver: JobReceiver;
  room: number;
}

/**
 * Distributes the jobs of one queue to the workers that offer its name, in turn. It claims only what the workers have room for
 * right now: nothing is buffered here, so no worker blocks another and a backlog costs no memory.
 */
export class Dispatcher implements Claimant {
  /** By job id: delivered by this server, with the reservation running. */
  readonly held = new Map<string, DeliveredJob>();
  readonly reporter: Reporter;
  readonly #receivers: JobReceiver[] = [];
  readonly #session: LiveSession;
  readonly #claims: QueueClaims;
  #turn = 0;
  #stopped = false;
  /** Whether the latest jobs had reservations; assumed at first, because such workers must not be flooded. */
  #reserved = true;

  constructor(
    private readonly context: ServerContext,
    readonly queue: string,
  ) {
    this.reporter = new Reporter(context.engine, queue, context.log);
    this.#session = this.#open();
    this.#claims = context.claims.join(queue, this);
  }

  /** As far as is known, there is nothing to claim. */
  get dry(): boolean {
    return this.#claims.dry;
  }

  get idle(): boolean {
    return this.#receivers.length === 0;
  }

  add(receiver: JobReceiver): void {
    this.#receivers.push(receiver);
    this.#wake();
  }

  remove(receiver: JobReceiver): void {
    const at = this.#receivers.indexOf(receiver);
    if (at >= 0) this.#receivers.splice(at, 1);
  }

  /** Called when there may be room. */
  pump(): void {
    this.#claims.offer(this);
  }

  /** Delivers nothing more. */
  stop(): void {
    this.#stopped = true;
    void this.context.claims.leave(this.queue, this);
  }

  async close(): Promise<void> {
    this.stop();
    await this.context.claims.leave(this.queue, this);
    await this.reporter.flushed();
    await this.#session.leave();
  }

  /** Returns an entry that never reached a worker to the front of the queue, without counting an attempt. */
  giveBack(entry: Pick<Entry, 'lease'> & { job?: DeliveredJob['job'] | undefined }): void {
    this.reporter.settle(returnLease(entry));
  }

  /** Settles an entry without a reservation once it was sent. */
  done(entry: Entry): void {
    const id = () => newId(this.context.engine.store.now());
    this.reporter.settle(settlementOf(entry, finish(entry.job ?? CLAIMED_TASK), id));
  }

  /** Opens the server session; jobs with a reservation outlive it, see SERVER_SESSION. */
  #open(): LiveSession {
    const { engine, heartbeat, log, lease, heartbeatEvery } = this.context;
    const { queue } = this;
    return new LiveSession({
      store: engine.store,
      heartbeat,
      queue,
      name: `${SERVER_SESSION}${hostname()}-${process.pid}`,
      info: { host: hostname(), pid: process.pid, interface: 'lakh' },
      lease,
      heartbeatMs: heartbeatEvery,
      hung: HUNG,
      joined: () => this.#wake(),
      lost: ({ worker }, why) => log.warn({ queue, worker, why }, 'the session of this server was lost'),
      late: () => {},
      failed: (error) => log.error({ err: error, queue }, 'the queue could not be joined'),
    });
  }

  #wake(): void {
    if (this.#stopped) return;
    this.pump();
    this.#claims.wake();
  }

  claim(): Promise<Claim> | undefined {
    const session = this.#session.current;
    if (!session || this.#stopped) return undefined;
    const shares = this.#shares();
    const n = shares.reduce((sum, share) => sum + share.room, 0);
    return n === 0 ? undefined : this.#claimFor(session, shares, n);
  }

  async #claimFor(session: WorkerSession, shares: Share[], n: number): Promise<Claim> {
    for (const { receiver, room } of shares) receiver.asked += room;
    let claim: Claim;
    try {
      claim = await this.context.engine.store.claim(session, n);
    } catch (error) {
      returnLostClaim(this.context.engine.store, session, error, this.context.log);
      throw error;
    } finally {
      for (const { receiver, room } of shares) receiver.asked -= room;
    }
    if (claim.status === 'lost') this.#session.lose(session, 'its session is gone');
    else this.#take(claim, shares);
    return claim;
  }

  /** Which receivers have room for how many, starting with the one that has waited longest. */
  #shares(): Share[] {
    const shares: Share[] = [];
    let left = MOST;
    const { length } = this.#receivers;
    for (let i = 0; i < length && left > 0; i++) {
      const receiver = this.#receivers[(this.#turn + i) % length]!;
      const room = Math.min(receiver.room(this.#reserved), left);
      if (room <= 0) continue;
      shares.push({ receiver, room });
      left -= room;
    }
    this.#turn = length === 0 ? 0 : (this.#turn + 1) % length;
    return shares;
  }

  #take({ entries }: Claim, shares: Share[]): void {
    if (entries.length === 0) return;
    this.#reserved = entries.some(({ job }) => job !== undefined && job.spec.reservation > 0);
    this.#deal(entries, shares);
  }

  /** Deals one entry to each receiver, round after round, while there is room. */
  #deal(entries: Entry[], shares: Share[]): void {
    const hands = shares.map(({ receiver, room }) => ({ receiver, room, dealt: [] as Entry[] }));
    let open = hands;
    let at = 0;
    for (const entry of entries) {
      const hand = open[at % open.length]!;
      hand.dealt.push(entry);
      if (--hand.room === 0) {
        open = open.filter((one) => one !== hand);
        if (open.length === 0) break;
      } else at += 1;
    }
    for (const { receiver, dealt } of hands) {
      if (dealt.length > 0) for (const entry of receiver.deliver(this, dealt)) this.giveBack(entry);
    }
  }
}
