import { returnLeases } from '../engine/return-leases.js';
import { CroreError } from '../errors.js';
import type { Entry } from '../job/job.js';
import { type Claim, MAX_BATCH, type Store, type WorkerSession } from '../store/store.js';
import { ClaimTrigger } from './claim-trigger.js';
import type { SettlementBatcher } from './settler.js';
import type { Slots } from './slots.js';

interface ClaimerHooks {
  /** The session to claim for, or undefined while there is none. */
  session: () => WorkerSession | undefined;
  lost: (session: WorkerSession) => void;
  /** Called after each claim with the number of entries it brought. */
  taken: (count: number) => void;
  onError: (error: Error, what: string) => void;
}

const ERROR_PAUSE = 200;
const MOST_RETURNED = 10_000;

/** Decides how much a worker claims when its `ClaimTrigger` reports that there may be work. */
export class Claimer {
  readonly #trigger: ClaimTrigger;
  #asked = 0;
  #scheduled = false;
  #closed = false;
  #held = false;
  /** The store may count entries as leased to this worker that it does not know of. */
  #mustReconcile = false;
  /** The store may send entries by itself. */
  #hasWaited = false;
  /** Leases that comparisons have returned, the newest at least: their entries may still be on their way here. */
  #returned = new Set<string>();
  #comparing: Promise<void> | undefined;

  constructor(
    private readonly store: Store,
    private readonly queue: string,
    private readonly concurrency: number,
    private readonly slots: Pick<Slots<never>, 'room' | 'share' | 'stocked' | 'tokens' | 'accept' | 'stop'>,
    private readonly settler: SettlementBatcher,
    private readonly hooks: ClaimerHooks,
  ) {
    this.#trigger = new ClaimTrigger(store, () => this.#claim(), { isWorker: true });
  }

  /** Called when there may be work. */
  wake(): void {
    this.#trigger.wake();
  }

  /** Called when there may be room; checked once per turn of the event loop. */
  fill(): void {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#claim();
    });
  }

  /** While held, nothing is claimed. */
  hold(held: boolean): void {
    this.#held = held;
    if (!held) this.wake();
  }

  /** Called when signals may have been missed: compares what the worker holds with what the store says it holds. */
  reconcile(): void {
    this.#mustReconcile = true;
    this.wake();
  }

  /** The last claim found nothing more that is ready. */
  get isDry(): boolean {
    return this.#trigger.dry;
  }

  /** Takes entries that the store has leased to this worker by itself. */
  deliver(worker: string, entries: () => Entry[]): void {
    if (this.hooks.session()?.worker !== worker || this.#closed) return;
    if (this.#held) {
      this.#mustReconcile = true;
      return;
    }
    const fresh = entries().filter(({ lease }) => !this.#returned.has(lease.token));
    this.slots.accept(fresh);
    this.hooks.taken(fresh.length);
    this.#trigger.wake();
  }

  close(): void {
    this.#closed = true;
    this.#trigger.close();
  }

  /** Returns what was sent to this worker since it was closed. */
  async withdraw(session: WorkerSession): Promise<void> {
    if (!this.#hasWaited || !this.store.withdraw) return;
    this.#hasWaited = false;
    try {
      await this.store.withdraw(session);
    } catch (error) {
      this.hooks.onError(error as Error, `leaving queue '${this.queue}'`);
      return;
    }
    await this.#compare(session);
  }

  /** Resolves when no claim is under way. */
  async settled(): Promise<void> {
    await this.#trigger.settled();
    await this.#comparing;
  }

  #claim(): void {
    const session = this.hooks.session();
    if (!session || this.#closed || this.#held || this.#comparing) return;
    if (this.#mustReconcile) {
      // A claim whose answer is here but has not been taken yet counts: its leases would look like those of a lost answer.
      if (this.#asked === 0) this.#startComparing(session);
      return;
    }
    if (!this.#trigger.isOpen || this.settler.clogged) return;
    const room = this.slots.room - this.#asked;
    const { share, stocked } = this.slots;
    // While entries are waiting here, a claim is delayed until it is large enough to be worth its round trip.
    if (room < 1 || (room < share && stocked)) return;
    void this.#send(session, Math.min(room, Math.max(share, this.concurrency), MAX_BATCH));
    if (room > share) this.fill();
  }

  async #send(session: WorkerSession, n: number): Promise<void> {
    this.#asked += n;
    try {
      this.#hasWaited = true;
      const claim = await this.#trigger.claim(() => this.store.claim(session, n, true));
      this.#asked -= n;
      this.#take(session, claim);
    } catch (error) {
      this.#asked -= n;
      this.#mustReconcile = true;
      this.hooks.onError(error as Error, `claiming from queue '${this.queue}'`);
    }
    if (this.#mustReconcile) this.fill();
  }

  #take(session: WorkerSession, claim: Claim): void {
    if (claim.status === 'lost') {
      this.hooks.lost(session);
      return;
    }
    // If the session was replaced during this claim, it no longer holds the claimed entries.
    if (this.hooks.session() !== session && !this.#closed) return;
    this.slots.accept(claim.entries);
    this.hooks.taken(claim.entries.length);
    if (!this.#trigger.dry) this.fill();
  }

  #startComparing(session: WorkerSession): void {
    this.#comparing = this.#compare(session).finally(() => {
      this.#comparing = undefined;
      this.wake();
    });
  }

  async #compare(session: WorkerSession): Promise<void> {
    this.#mustReconcile = false;
    try {
      const before = new Set([...this.slots.tokens, ...this.settler.tokens]);
      const held = await this.store.leasesOf(this.queue, session.worker);
      const theirs = new Set(held.map((lease) => lease.token));
      const taken = new CroreError('LEASE_LOST', 'the job was cancelled or its lease was lost');
      for (const token of this.slots.tokens) {
        if (before.has(token) && !theirs.has(token)) this.slots.stop(token, taken);
      }
      // What was delivered meanwhile is held here, too.
      const now = new Set([...this.slots.tokens, ...this.settler.tokens]);
      const unknown = held.filter(({ token }) => !before.has(token) && !now.has(token));
      if (this.#returned.size > MOST_RETURNED) this.#returned.clear();
      for (const { token } of unknown) this.#returned.add(token);
      await returnLeases(this.store, this.queue, unknown);
    } catch (error) {
      this.#mustReconcile = true;
      this.hooks.onError(error as Error, `comparing leases of queue '${this.queue}'`);
      await new Promise((resolve) => setTimeout(resolve, ERROR_PAUSE));
    }
  }
}
