import { hostname } from 'node:os';
import { CLAIMED_TASK, returnLease, settlementOf } from '../../engine/raw-task.js';
import { newId } from '../../job/id.js';
import type { Entry, Job, Lease } from '../../job/job.js';
import { finish } from '../../job/transitions.js';
import { type Claim, MAX_BATCH, SERVER_SESSION, type Signal } from '../../store/store.js';
import { ClaimTrigger } from '../../worker/claim-trigger.js';
import { LiveSession } from '../../worker/live-session.js';
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

/**
 * Distributes the jobs of one queue to the workers that offer its name, in turn. It claims only what the workers have room for
 * right now: nothing is buffered here, so no worker blocks another and a backlog costs no memory.
 */
export class Dispatcher {
  /** By job id: delivered by this server, with the reservation running. */
  readonly held = new Map<string, DeliveredJob>();
  readonly reporter: Reporter;
  readonly #receivers: JobReceiver[] = [];
  readonly #session: LiveSession;
  readonly #unsubscribe: () => void;
  readonly #trigger: ClaimTrigger;
  #turn = 0;
  #scheduled = false;
  #stopped = false;
  /** Whether the latest jobs had reservations; assumed at first, because such workers must not be flooded. */
  #reserved = true;

  constructor(
    private readonly context: ServerContext,
    readonly queue: string,
  ) {
    this.reporter = new Reporter(context.engine, queue, context.log);
    this.#trigger = new ClaimTrigger(context.engine.store, () => this.pump());
    this.#session = this.#open();
    this.#unsubscribe = context.engine.store.subscribe(queue, (signal) => this.#onSignal(signal));
  }

  /** As far as is known, there is nothing to claim. */
  get dry(): boolean {
    return this.#trigger.dry;
  }

  get idle(): boolean {
    return this.#receivers.length === 0;
  }

  add(receiver: JobReceiver): void {
    this.#receivers.push(receiver);
    this.wake();
  }

  remove(receiver: JobReceiver): void {
    const at = this.#receivers.indexOf(receiver);
    if (at >= 0) this.#receivers.splice(at, 1);
  }

  wake(): void {
    this.#trigger.wake();
  }

  /** Called when there may be room; checked once per turn of the event loop. */
  pump(): void {
    if (this.#scheduled || this.#stopped) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#claim();
    });
  }

  /** Delivers nothing more. */
  stop(): void {
    this.#stopped = true;
    this.#trigger.close();
    this.#unsubscribe();
  }

  async close(): Promise<void> {
    this.stop();
    await this.#trigger.settled();
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
      joined: () => this.wake(),
      lost: ({ worker }, why) => log.warn({ queue, worker, why }, 'the session of this server was lost'),
      late: () => {},
      failed: (error) => log.error({ err: error, queue }, 'the queue could not be joined'),
    });
  }

  #onSignal(signal: Signal): void {
    if (signal.type === 'work' || signal.type === 'reset') this.wake();
  }

  #claim(): void {
    const session = this.#session.current;
    if (!session || this.#stopped || !this.#trigger.isOpen) return;
    const shares = this.#shares();
    const n = shares.reduce((sum, share) => sum + share.room, 0);
    if (n === 0) return;
    for (const { receiver, room } of shares) receiver.asked += room;
    const over = () => {
      for (const { receiver, room } of shares) receiver.asked -= room;
    };
    this.#trigger
      .claim(() => this.context.engine.store.claim(session, n))
      .then(
        (claim) => {
          over();
          if (claim.status === 'lost') this.#session.lose(session, 'its session is gone');
          else this.#take(claim, shares);
        },
        (error) => {
          over();
          this.context.log.error({ err: error, queue: this.queue }, 'jobs could not be claimed');
        },
      );
  }

  /** Which receivers have room for how many, starting with the one that has waited longest. */
  #shares(): { receiver: JobReceiver; room: number }[] {
    const shares: { receiver: JobReceiver; room: number }[] = [];
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

  #take({ entries }: Claim, shares: { receiver: JobReceiver; room: number }[]): void {
    if (entries.length > 0) {
      this.#reserved = entries.some(({ job }) => job !== undefined && job.spec.reservation > 0);
      this.#deal(entries, shares);
    }
    if (!this.#trigger.dry) this.pump();
  }

  /** Deals one entry to each receiver, round after round, while there is room. */
  #deal(entries: Entry[], shares: { receiver: JobReceiver; room: number }[]): void {
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
