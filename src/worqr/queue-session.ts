import { randomBytes } from 'node:crypto';
import { Batcher } from '../engine/batcher.js';
import { returnLease } from '../engine/raw-task.js';
import { CroreError } from '../errors.js';
import type { RawTaskStore } from '../store/raw-store.js';
import { MAX_BATCH, type WorkerSession } from '../store/store.js';
import { processId } from './names.js';
import { fromBytes, type Process } from './tasks.js';

type Taken = Process<string | Buffer>;

/** How often leases of a take whose answer was lost are looked for: the server may get to it late. */
const LOOKS = 10;
/** Processes in hand beyond which each look makes sure that they are. */
const MANY = 1_000;
/** Looks without a take after which even one process in hand is doubted. */
const QUIET = 3;

/** A worker's place at one queue: its session there, and what it has in hand. */
export class QueueSession {
  /** Tokens of what was taken here and has not been seen to end. */
  readonly inHand = new Set<string>();
  /** The last take came back with nothing, or there was none yet. */
  #hungry = true;
  /** Looks since the last take. */
  #quietLooks = 0;
  readonly #takes: Batcher<void, Taken | null>;
  /** With the number of a take, its nonce. */
  readonly #stamp = randomBytes(9).toString('base64url');
  #takesMade = 0;
  /** Nonces of takes whose answer was lost, with the looks that are left. */
  readonly #doubts = new Map<string, number>();

  constructor(
    private readonly store: RawTaskStore,
    readonly session: WorkerSession,
    private readonly binary: boolean,
    /** Called when the store does not know the session any more; makes the error for callers. */
    private readonly lost: () => CroreError,
  ) {
    this.#takes = new Batcher(
      (asked) => this.#take(asked.length),
      { items: MAX_BATCH, bytes: Number.POSITIVE_INFINITY, parallel: store.maxParallelClaims },
      () => 0,
    );
  }

  /** One task, or null when none waits. Calls of one turn of the event loop are one take. */
  take(): Promise<Taken | null> {
    return this.#takes.add();
  }

  /** These are known to be over. */
  forget(tokens: readonly string[]): void {
    for (const token of tokens) this.inHand.delete(token);
  }

  /** Whether nothing here would ask for work by itself, as far as one can tell. Called now and then. */
  async isIdle(): Promise<boolean> {
    this.#quietLooks += 1;
    if (this.#hungry) return true;
    // Others may have finished what was taken here: that is looked into before work is left lying for its sake.
    if (this.inHand.size > MANY || (this.inHand.size > 0 && this.#quietLooks >= QUIET)) await this.#recount();
    return this.inHand.size === 0 && this.#quietLooks > 1;
  }

  /** Gives back what a take brought whose answer was lost. Called now and then. */
  async settleDoubts(): Promise<void> {
    if (this.#doubts.size === 0) return;
    const { queue, worker } = this.session;
    const held = await this.store.leasesOf(queue, worker);
    const nobodys = held.filter(({ token }) => [...this.#doubts.keys()].some((nonce) => token.endsWith(nonce)));
    if (nobodys.length > 0)
      await this.store.settle(
        queue,
        nobodys.map((lease) => returnLease({ lease })),
      );
    for (const [nonce, left] of this.#doubts) {
      if (left <= 1) this.#doubts.delete(nonce);
      else this.#doubts.set(nonce, left - 1);
    }
  }

  /** Forgets what is no longer held. */
  async #recount(): Promise<void> {
    const before = [...this.inHand];
    const held = new Set(
      (await this.store.leasesOf(this.session.queue, this.session.worker)).map(({ token }) => token),
    );
    for (const token of before) if (!held.has(token)) this.inHand.delete(token);
  }

  async #take(n: number): Promise<(Taken | null)[]> {
    this.#quietLooks = 0;
    this.#takesMade += 1;
    const nonce = `${this.#stamp}_${this.#takesMade.toString(36)}`;
    const { status, claimed: taken } = await this.store.raw.claim(this.session, n, nonce).catch((error: unknown) => {
      if (error instanceof CroreError && error.code === 'STORE_UNCERTAIN') this.#doubts.set(nonce, LOOKS);
      throw error;
    });
    if (status === 'lost') throw this.lost();
    this.#hungry = taken.length < n;
    const processes = new Array<Taken | null>(n).fill(null);
    for (let i = 0; i < taken.length; i++) {
      const { token, task } = taken[i]!;
      this.inHand.add(token);
      processes[i] = { id: processId(this.session.queue, token), task: fromBytes(task, this.binary) };
    }
    return processes;
  }
}
