import type { Entry, Job, Lease } from '../../job/job.js';
import { DEFAULT_SPEC } from '../../job/spec.js';
import { type Counted, finish, release } from '../../job/transitions.js';
import { type Claim, MAX_BATCH, type Settlement, type Signal } from '../../store/store.js';
import type { ServerContext } from '../context.js';
import { ServerSession } from '../server-session.js';
import { Reporter } from './reporter.js';

/** Most entries of one claim. */
const MOST = Math.min(1_000, MAX_BATCH);
const SLOW_POLL = 5_000;
const ERROR_PAUSE = 200;
const LONGEST_TIMER = 2 ** 31 - 1;
const TASK: Counted = { attempt: 1, crashes: 0, spec: DEFAULT_SPEC };

/** What is kept of a job while its report is awaited: enough to settle it, none of its payload. */
export interface DeliveredJob {
  lease: Lease;
  job: Pick<Job, 'attempt' | 'crashes' | 'priority' | 'spec' | 'id' | 'worker' | 'token'>;
  receiver: JobReceiver;
}

/** A worker's stream, as far as a dispatcher sees it. */
export interface JobReceiver {
  /** How many more it can take now. */
  room(reserved: boolean): number;
  /** Room that is spoken for by a claim on its way. */
  asked: number;
  /** Takes entries; gives back those it cannot. */
  deliver(dispatcher: Dispatcher, entries: Entry[]): Entry[];
}

/**
 * Deals the jobs of one queue to the workers that offer its name, turn by turn. It claims only what workers have room for
 * at this moment: nothing is stocked here, so no worker holds up another and a backlog costs no memory.
 */
export class Dispatcher {
  /** By job id: handed out by this server, reservation running. */
  readonly held = new Map<string, DeliveredJob>();
  readonly reporter: Reporter;
  readonly #receivers: JobReceiver[] = [];
  readonly #session: ServerSession;
  readonly #unsubscribe: () => void;
  readonly #poll: NodeJS.Timeout;
  #dueTimer: NodeJS.Timeout | undefined;
  #turn = 0;
  #flights = 0;
  #scheduled = false;
  #stopped = false;
  /** The last claim found nothing more: wait to be told. */
  #dry = false;
  #wakes = 0;
  /** The jobs that came last had reservations; assumed at first, for such workers must not be flooded. */
  #reserved = true;
  #landed: (() => void)[] = [];

  constructor(
    private readonly context: ServerContext,
    readonly queue: string,
  ) {
    this.reporter = new Reporter(context.engine, queue, context.log);
    this.#session = new ServerSession(context, queue, () => this.wake());
    this.#unsubscribe = context.engine.store.subscribe(queue, (signal) => this.#onSignal(signal));
    this.#poll = setInterval(() => this.wake(), SLOW_POLL).unref();
  }

  /** There is nothing to claim as far as is known. */
  get dry(): boolean {
    return this.#dry;
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
    this.#wakes += 1;
    this.#dry = false;
    this.pump();
  }

  /** There may be room: looked at once per turn of the event loop. */
  pump(): void {
    if (this.#scheduled || this.#stopped) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#claim();
    });
  }

  /** Hands nothing out any more. */
  stop(): void {
    this.#stopped = true;
    clearInterval(this.#poll);
    clearTimeout(this.#dueTimer);
    this.#unsubscribe();
  }

  async close(): Promise<void> {
    this.stop();
    if (this.#flights > 0) await new Promise<void>((resolve) => this.#landed.push(resolve));
    await this.reporter.flushed();
    await this.#session.close();
  }

  /** An entry that never reached a worker: back to the front, uncharged. */
  giveBack(entry: Pick<Entry, 'lease'> & { job?: DeliveredJob['job'] | undefined }): void {
    this.reporter.settle(settlementOf(entry, true));
  }

  /** An entry without a reservation that was sent. */
  done(entry: Entry): void {
    this.reporter.settle(settlementOf(entry, false));
  }

  #onSignal(signal: Signal): void {
    if (signal.type === 'work' || signal.type === 'reset') this.wake();
  }

  #claim(): void {
    const session = this.#session.session;
    if (!session || this.#stopped || this.#dry || this.#flights >= this.context.engine.store.maxParallelClaims) return;
    const shares = this.#shares();
    const n = shares.reduce((sum, share) => sum + share.room, 0);
    if (n === 0) return;
    for (const { receiver, room } of shares) receiver.asked += room;
    this.#flights += 1;
    const wakes = this.#wakes;
    this.context.engine.store
      .claim(session, n)
      .then(
        (claim) => {
          for (const { receiver, room } of shares) receiver.asked -= room;
          if (claim.status === 'lost') this.#session.lost(session);
          else this.#take(claim, shares, wakes);
        },
        (error) => {
          for (const { receiver, room } of shares) receiver.asked -= room;
          this.context.log.error({ err: error, queue: this.queue }, 'jobs could not be claimed');
          setTimeout(() => this.wake(), ERROR_PAUSE).unref();
        },
      )
      .finally(() => {
        this.#flights -= 1;
        if (this.#flights === 0) for (const resolve of this.#landed.splice(0)) resolve();
      });
  }

  /** Who has room for how many, starting with whoever has waited longest. */
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

  #take(claim: Claim, shares: { receiver: JobReceiver; room: number }[], wakes: number): void {
    this.#dry = !claim.more && wakes === this.#wakes;
    if (claim.nextAt !== undefined) this.#wakeAt(claim.nextAt);
    const { entries } = claim;
    if (entries.length > 0) {
      this.#reserved = entries.some(({ job }) => job !== undefined && job.spec.reservation > 0);
      this.#deal(entries, shares);
    }
    if (!this.#dry) this.pump();
  }

  /** One each, round after round, while there is room. */
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

  #wakeAt(time: number): void {
    if (this.#stopped) return;
    clearTimeout(this.#dueTimer);
    const wait = Math.min(Math.max(1, time - this.context.engine.store.now()), LONGEST_TIMER);
    this.#dueTimer = setTimeout(() => this.wake(), wait).unref();
  }
}

function settlementOf(
  { lease, job }: Pick<Entry, 'lease'> & { job?: DeliveredJob['job'] | undefined },
  back: boolean,
): Settlement {
  const counted = job ?? TASK;
  const move = back ? release(counted) : finish(counted);
  return { lease, move, spec: job?.spec ?? DEFAULT_SPEC, priority: job?.priority ?? 0 };
}
