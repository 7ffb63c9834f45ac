import type { Claim, Signal, Store } from '../../store/store.js';
import { ClaimTrigger } from '../../worker/claim-trigger.js';
import type { Log } from '../context.js';

/** How many claimants may claim at once while the queue has more than they take. */
const MOST_AT_ONCE = 32;

/** Whoever claims jobs of a queue for workers, with a session of its own: a crore.v1 stream, or the dispatcher of Lakh. */
export interface Claimant {
  /** Claims what its workers have room for and passes it on; undefined if they have no room now. */
  claim(): Promise<Claim> | undefined;
  onSignal?(signal: Signal): void;
}

/**
 * When to claim from a queue, decided once for all workers that this server has there: one subscription, one poll, and as many
 * claims as there is work for, not as many as there are workers. Claimants take turns; one that found no room is asked again
 * only after it has said that it has some.
 */
export class QueueClaims {
  readonly #trigger: ClaimTrigger;
  readonly #unsubscribe: () => void;
  readonly #all = new Set<Claimant>();
  /** Those that may have room, the one that has waited longest first. */
  readonly #hungry = new Set<Claimant>();
  /** Those with claims under way: how many, and who waits for their end. */
  readonly #claiming = new Map<Claimant, { claims: number; ended: (() => void)[] }>();
  /** How many claim together: a single one finds out whether there is work for more. */
  #width = 1;
  #scheduled = false;

  constructor(
    store: Store,
    private readonly queue: string,
    private readonly log: Log,
  ) {
    this.#trigger = new ClaimTrigger(store, () => this.#pump());
    this.#unsubscribe = store.subscribe(queue, (signal) => this.#onSignal(signal));
  }

  /** As far as is known, there is nothing to claim. */
  get dry(): boolean {
    return this.#trigger.dry;
  }

  get isIdle(): boolean {
    return this.#all.size === 0 && this.#claiming.size === 0;
  }

  add(claimant: Claimant): void {
    this.#all.add(claimant);
    this.offer(claimant);
    this.wake();
  }

  /** It gets no more turns; resolves when no claim of its own is under way. */
  async remove(claimant: Claimant): Promise<void> {
    this.#all.delete(claimant);
    this.#hungry.delete(claimant);
    const claiming = this.#claiming.get(claimant);
    if (claiming) await new Promise<void>((resolve) => claiming.ended.push(resolve));
  }

  /** Called when a claimant may have room. */
  offer(claimant: Claimant): void {
    if (!this.#all.has(claimant)) return;
    this.#hungry.add(claimant);
    if (this.#trigger.isOpen) this.#pump();
  }

  /** Called when new work may be available. */
  wake(): void {
    this.#trigger.wake();
  }

  close(): void {
    this.#trigger.close();
    this.#unsubscribe();
  }

  #onSignal(signal: Signal): void {
    if (signal.type === 'work' || signal.type === 'reset') this.wake();
    if (signal.type === 'cancelled' || signal.type === 'reset') for (const one of this.#all) one.onSignal?.(signal);
  }

  /** Claims once per turn of the event loop. */
  #pump(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#claim();
    });
  }

  #claim(): void {
    while (this.#trigger.isOpen) {
      const started = this.#start();
      if (started.length === 0) return;
      void this.#trigger
        .claim(() => (started.length === 1 ? started[0]! : together(started)))
        .then(
          ({ more }) => {
            this.#width = more ? Math.min(2 * this.#width, MOST_AT_ONCE) : 1;
          },
          (error) => this.log.error({ err: error, queue: this.queue }, 'jobs could not be claimed'),
        )
        .then(() => {
          if (this.#trigger.isOpen) this.#pump();
        });
    }
  }

  #start(): Promise<Claim>[] {
    const started: Promise<Claim>[] = [];
    const again: Claimant[] = [];
    for (const claimant of this.#hungry) {
      this.#hungry.delete(claimant);
      const claim = claimant.claim();
      if (!claim) continue;
      started.push(this.#counted(claimant, claim));
      again.push(claimant);
      if (started.length >= this.#width) break;
    }
    for (const claimant of again) this.#hungry.add(claimant);
    return started;
  }

  async #counted(claimant: Claimant, claim: Promise<Claim>): Promise<Claim> {
    const claiming = this.#claiming.get(claimant) ?? { claims: 0, ended: [] };
    this.#claiming.set(claimant, claiming);
    claiming.claims += 1;
    try {
      return await claim;
    } finally {
      claiming.claims -= 1;
      if (claiming.claims === 0) this.#claiming.delete(claimant);
      if (claiming.claims === 0) for (const resolve of claiming.ended) resolve();
      if (this.#all.has(claimant)) this.#hungry.add(claimant);
    }
  }
}

/** Claims that were sent together, as one. The last one knows best whether there is more. */
async function together(claims: readonly Promise<Claim>[]): Promise<Claim> {
  const all = await Promise.allSettled(claims);
  const failed = all.find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
  const results = all.map((one) => (one as PromiseFulfilledResult<Claim>).value);
  const status = results.some((one) => one.status === 'lost') ? 'lost' : 'ok';
  const next = results.flatMap(({ nextAt }) => nextAt ?? []);
  const { more } = results.at(-1)!;
  return { status, entries: [], more, ...(next.length > 0 ? { nextAt: Math.min(...next) } : {}) };
}

/** The queues for which this server has workers. */
export class ClaimsByQueue {
  readonly #queues = new Map<string, QueueClaims>();

  constructor(
    private readonly store: Store,
    private readonly log: Log,
  ) {}

  join(queue: string, claimant: Claimant): QueueClaims {
    let claims = this.#queues.get(queue);
    if (!claims) {
      claims = new QueueClaims(this.store, queue, this.log);
      this.#queues.set(queue, claims);
    }
    claims.add(claimant);
    return claims;
  }

  /** Resolves when no claim of the claimant is under way. */
  async leave(queue: string, claimant: Claimant): Promise<void> {
    const claims = this.#queues.get(queue);
    await claims?.remove(claimant);
    if (!claims?.isIdle || this.#queues.get(queue) !== claims) return;
    this.#queues.delete(queue);
    claims.close();
  }
}
