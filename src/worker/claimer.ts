import { CroreError } from '../errors.js';
import type { Lease } from '../job/job.js';
import { release } from '../job/transitions.js';
import { type Claim, MAX_BATCH, type Settlement, type Store, type WorkerSession } from '../store/store.js';
import { TASK } from './outcome.js';
import type { SettlementBatcher } from './settler.js';
import type { Slots } from './slots.js';

interface IntakeHooks {
  /** The session to claim for, or undefined while there is none. */
  session: () => WorkerSession | undefined;
  lost: () => void;
  onError: (error: Error, what: string) => void;
}

const SLOW_POLL = 5_000;
const ERROR_PAUSE = 200;
const LONGEST_TIMER = 2 ** 31 - 1;

/** Decides when to claim how much. */
export class Claimer {
  #flights = 0;
  #asked = 0;
  #scheduled = false;
  #closed = false;
  #held = false;
  /** The last claim found nothing more: wait to be told. */
  #dry = false;
  #wakes = 0;
  /** Something may be leased to us that we do not know of. */
  #doubtful = false;
  #reconciling = false;
  #dueTimer: NodeJS.Timeout | undefined;
  readonly #poll: NodeJS.Timeout;
  #landed: (() => void)[] = [];

  constructor(
    private readonly store: Store,
    private readonly queue: string,
    private readonly concurrency: number,
    private readonly slots: Pick<Slots<never>, 'room' | 'share' | 'stocked' | 'tokens' | 'accept' | 'stop'>,
    private readonly settler: SettlementBatcher,
    private readonly hooks: IntakeHooks,
  ) {
    this.#poll = setInterval(() => this.wake(), SLOW_POLL);
  }

  /** There may be work. */
  wake(): void {
    this.#wakes += 1;
    this.#dry = false;
    this.#claim();
  }

  /** There may be room: looked at once per turn of the event loop. */
  fill(): void {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#claim();
    });
  }

  /** Claims nothing while held. */
  hold(held: boolean): void {
    this.#held = held;
    if (!held) this.wake();
  }

  /** Something may have been missed: compares what we hold with what the store says we hold. */
  reconcile(): void {
    this.#doubtful = true;
    this.wake();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#poll);
    clearTimeout(this.#dueTimer);
  }

  /** Resolves when no claim is under way. */
  settled(): Promise<void> {
    if (this.#flights === 0 && !this.#reconciling) return Promise.resolve();
    return new Promise((resolve) => this.#landed.push(resolve));
  }

  #claim(): void {
    const session = this.hooks.session();
    if (!session || this.#closed || this.#held || this.#reconciling) return;
    if (this.#doubtful) {
      if (this.#flights === 0) void this.#compare(session);
      return;
    }
    if (this.#dry || this.#flights >= this.store.maxParallelClaims || this.settler.clogged) return;
    const room = this.slots.room - this.#asked;
    const { share, stocked } = this.slots;
    // While there is a stock, a claim may wait until it is worth its round trip.
    if (room < 1 || (room < share && stocked)) return;
    void this.#send(session, Math.min(room, Math.max(share, this.concurrency), MAX_BATCH));
    if (room > share) this.fill();
  }

  async #send(session: WorkerSession, n: number): Promise<void> {
    this.#flights += 1;
    this.#asked += n;
    const wakes = this.#wakes;
    let claim: Claim | undefined;
    try {
      claim = await this.store.claim(session, n);
    } catch (error) {
      this.hooks.onError(error as Error, `claiming from queue '${this.queue}'`);
      this.#doubtful = true;
    }
    this.#flights -= 1;
    this.#asked -= n;
    if (claim) this.#take(session, claim, wakes);
    else if (!this.#closed) setTimeout(() => this.wake(), ERROR_PAUSE);
    this.#land();
  }

  #take(session: WorkerSession, claim: Claim, wakes: number): void {
    if (claim.status === 'lost') {
      this.hooks.lost();
      return;
    }
    // A session replaced while this claim was on the wire no longer holds what it brought.
    if (this.hooks.session() !== session && !this.#closed) return;
    // A call to wake may have overtaken this answer: then it does not say the last word.
    this.#dry = !claim.more && wakes === this.#wakes;
    this.slots.accept(claim.entries);
    if (claim.nextAt !== undefined) this.#wakeAt(claim.nextAt);
    if (!this.#dry) this.fill();
  }

  #wakeAt(time: number): void {
    if (this.#closed) return;
    clearTimeout(this.#dueTimer);
    const wait = Math.min(Math.max(1, time - this.store.now()), LONGEST_TIMER);
    this.#dueTimer = setTimeout(() => this.wake(), wait).unref();
  }

  #land(): void {
    if (this.#flights === 0 && !this.#reconciling) for (const resolve of this.#landed.splice(0)) resolve();
  }

  async #compare(session: WorkerSession): Promise<void> {
    this.#reconciling = true;
    this.#doubtful = false;
    try {
      const before = new Set([...this.slots.tokens, ...this.settler.tokens]);
      const held = await this.store.leasesOf(this.queue, session.worker);
      const theirs = new Set(held.map((lease) => lease.token));
      const taken = new CroreError('LEASE_LOST', 'the job was cancelled or taken away');
      for (const token of this.slots.tokens) {
        if (before.has(token) && !theirs.has(token)) this.slots.stop(token, taken);
      }
      await this.#giveBack(held.filter((lease) => !before.has(lease.token)));
    } catch (error) {
      this.#doubtful = true;
      this.hooks.onError(error as Error, `comparing leases of queue '${this.queue}'`);
      await new Promise((resolve) => setTimeout(resolve, ERROR_PAUSE));
    }
    this.#reconciling = false;
    this.#land();
    this.wake();
  }

  /** Leases of a claim whose answer never came: back to the front, as if it had not happened. */
  async #giveBack(held: Lease[]): Promise<void> {
    const jobs = await this.store.get(
      this.queue,
      held.flatMap((lease) => lease.id ?? []),
    );
    const byToken = new Map(jobs.flatMap((job) => (job?.token ? [[job.token, job] as const] : [])));
    const settlements = held.flatMap((lease): Settlement[] => {
      const job =
        lease.id === undefined ? { attempt: 1, crashes: 0, priority: 0, spec: TASK.spec } : byToken.get(lease.token);
      return job ? [{ lease, move: release(job), spec: job.spec, priority: job.priority }] : [];
    });
    if (settlements.length > 0) await this.store.settle(this.queue, settlements);
  }
}
