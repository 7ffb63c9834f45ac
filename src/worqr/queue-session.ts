import { randomBytes } from 'node:crypto';
import { Batcher } from '../engine/batcher.js';
import { returnLease } from '../engine/raw-task.js';
import { CroreError } from '../errors.js';
import type { RawTaskStore } from '../store/raw-store.js';
import { MAX_BATCH } from '../store/store.js';
import type { Session } from '../worker/session.js';
import { processId } from './names.js';
import { fromBytes, type Process } from './tasks.js';

type Taken = Process<string | Buffer>;

/** How often to look for leases of a claim whose reply was lost: the server may execute it late. */
const LOOKS = 10;
/** With more processes in hand than this, each check verifies them. */
const MANY = 1_000;
/** Checks without a claim after which even a single process in hand is verified. */
const QUIET = 3;

/** A worker's session at one queue, and the processes it holds there. */
export class QueueSession {
  /** Tokens of tasks claimed here that are not known to have ended. */
  readonly inHand = new Set<string>();
  /** The last claim returned too few tasks, or there was none yet. */
  #wantsWork = true;
  /** Checks since the last claim. */
  #checksSinceClaim = 0;
  readonly #takes: Batcher<void, Taken | null>;
  /** Together with the number of a claim, its nonce. */
  readonly #stamp = randomBytes(9).toString('base64url');
  #takesMade = 0;
  /** Nonces of claims whose reply was lost, with the number of checks left. */
  readonly #uncertainClaims = new Map<string, number>();

  constructor(
    private readonly store: RawTaskStore,
    readonly session: Session,
    private readonly binary: boolean,
    /** Called when the store no longer knows the session; creates the error for callers. */
    private readonly lost: () => CroreError,
  ) {
    this.#takes = new Batcher(
      (asked) => this.#take(asked.length),
      { items: MAX_BATCH, bytes: Number.POSITIVE_INFINITY, parallel: store.maxParallelClaims },
      () => 0,
    );
  }

  /** One task, or null if none waits. Calls within one turn of the event loop share one claim. */
  take(): Promise<Taken | null> {
    return this.#takes.add();
  }

  /** Removes processes that are known to have ended. */
  forget(tokens: readonly string[]): void {
    for (const token of tokens) this.inHand.delete(token);
  }

  /** Whether this session would not claim work by itself, as far as is known. Called periodically. */
  async isIdle(): Promise<boolean> {
    this.#checksSinceClaim += 1;
    if (this.#wantsWork) return true;
    // Other instances may have finished tasks claimed here: verify that before leaving work waiting because of them.
    if (this.inHand.size > MANY || (this.inHand.size > 0 && this.#checksSinceClaim >= QUIET)) await this.#recount();
    return this.inHand.size === 0 && this.#checksSinceClaim > 1;
  }

  /** Returns the tasks of claims whose reply was lost. Called periodically. */
  async returnUncertainClaims(): Promise<void> {
    if (this.#uncertainClaims.size === 0) return;
    const { queue, worker } = this.session;
    const held = await this.store.leasesOf(queue, worker);
    const orphaned = held.filter(({ token }) =>
      [...this.#uncertainClaims.keys()].some((nonce) => token.endsWith(nonce)),
    );
    if (orphaned.length > 0)
      await this.store.settle(
        queue,
        orphaned.map((lease) => returnLease({ lease })),
      );
    for (const [nonce, left] of this.#uncertainClaims) {
      if (left <= 1) this.#uncertainClaims.delete(nonce);
      else this.#uncertainClaims.set(nonce, left - 1);
    }
  }

  /** Removes processes that are no longer leased. */
  async #recount(): Promise<void> {
    const before = [...this.inHand];
    const held = new Set(
      (await this.store.leasesOf(this.session.queue, this.session.worker)).map(({ token }) => token),
    );
    for (const token of before) if (!held.has(token)) this.inHand.delete(token);
  }

  async #take(n: number): Promise<(Taken | null)[]> {
    this.#checksSinceClaim = 0;
    this.#takesMade += 1;
    const nonce = `${this.#stamp}_${this.#takesMade.toString(36)}`;
    const { status, claimed: taken } = await this.store.raw.claim(this.session, n, nonce).catch((error: unknown) => {
      if (error instanceof CroreError && error.code === 'STORE_UNCERTAIN') this.#uncertainClaims.set(nonce, LOOKS);
      throw error;
    });
    if (status === 'lost') throw this.lost();
    this.#wantsWork = taken.length < n;
    const processes = new Array<Taken | null>(n).fill(null);
    for (let i = 0; i < taken.length; i++) {
      const { token, task } = taken[i]!;
      this.inHand.add(token);
      processes[i] = { id: processId(this.session.queue, token), task: fromBytes(task, this.binary) };
    }
    return processes;
  }
}
