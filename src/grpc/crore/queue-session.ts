import { randomBytes } from 'node:crypto';
import type { Entry } from '../../job/job.js';
import type { Signal, WorkerSession } from '../../store/store.js';
import type { ServerContext } from '../context.js';
import { giveBack } from './settlements.js';

const SLOW_POLL = 5_000;
const LONGEST_TIMER = 2 ** 31 - 1;

interface Hooks {
  work: () => void;
  cancelled: (token: string) => void;
  lost: (queue: StreamQueue) => void;
  /** Something may have been missed. */
  reset: (queue: StreamQueue) => void;
}

/** One queue of a worker's stream: its session, and what is known about whether there is work. */
export class StreamQueue {
  #session: WorkerSession;
  #unsubscribe = () => {};
  readonly #poll: NodeJS.Timeout;
  #dueTimer: NodeJS.Timeout | undefined;
  #dry = false;
  #wakes = 0;
  #claiming = false;
  #closed = false;
  #giving: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly context: ServerContext,
    readonly queue: string,
    worker: string,
    lease: number,
    private readonly hooks: Hooks,
  ) {
    this.#session = { queue, worker, lease };
    this.#poll = setInterval(() => this.#wake(), SLOW_POLL).unref();
  }

  get session(): WorkerSession {
    return this.#session;
  }

  /** A claim may find something. */
  get open(): boolean {
    return !this.#dry && !this.#claiming && !this.#closed;
  }

  async join(): Promise<void> {
    const { store } = this.context.engine;
    const { queue, worker, lease } = this.#session;
    const info = JSON.stringify({ door: 'crore.v1', since: Date.now() });
    await store.join(queue, worker, { lease, info });
    this.#unsubscribe();
    this.#unsubscribe = store.subscribe(queue, (signal) => this.#onSignal(signal));
    this.#dry = false;
  }

  /** After a session is lost its name must not be used again. */
  async rejoin(): Promise<void> {
    this.hooks.lost(this);
    const { worker } = this.#session;
    this.#session = { ...this.#session, worker: `${worker.slice(0, -9)}-${randomBytes(4).toString('hex')}` };
    await this.join();
    this.hooks.work();
  }

  /** What there is, up to n; nothing when the store does not answer. */
  async claim(n: number): Promise<Entry[]> {
    const { engine, log } = this.context;
    this.#claiming = true;
    const wakes = this.#wakes;
    try {
      const claim = await engine.store.claim(this.#session, n);
      this.#dry = claim.entries.length < n && !claim.more && wakes === this.#wakes;
      if (claim.status === 'paused') this.#dry = true;
      if (claim.nextAt !== undefined) this.#wakeAt(claim.nextAt);
      if (claim.status === 'lost' && !this.#closed) await this.rejoin();
      return claim.entries;
    } catch (error) {
      this.#dry = true; // the slow poll looks again
      log.error({ err: error, queue: this.queue }, 'jobs could not be claimed');
      return [];
    } finally {
      this.#claiming = false;
    }
  }

  giveBack(entries: readonly Entry[]): void {
    const { engine, log } = this.context;
    const settlements = entries.map(giveBack);
    this.#giving = Promise.all([this.#giving, engine.store.settle(this.queue, settlements)]).catch((error) => {
      log.warn({ err: error, queue: this.queue }, 'jobs could not be given back: their leases run out');
    });
  }

  async leave(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#poll);
    clearTimeout(this.#dueTimer);
    this.#unsubscribe();
    await this.#giving;
    await this.context.engine.store.leave(this.queue, this.#session.worker).catch(() => {}); // it expires by itself
  }

  #onSignal(signal: Signal): void {
    if (signal.type === 'work' || signal.type === 'reset') this.#wake();
    else if (signal.type === 'cancelled') this.hooks.cancelled(signal.token);
    if (signal.type === 'reset') this.hooks.reset(this);
  }

  #wake(): void {
    this.#wakes += 1;
    this.#dry = false;
    this.hooks.work();
  }

  #wakeAt(time: number): void {
    if (this.#closed) return;
    clearTimeout(this.#dueTimer);
    const wait = Math.min(Math.max(1, time - this.context.engine.store.now()), LONGEST_TIMER);
    this.#dueTimer = setTimeout(() => this.#wake(), wait).unref();
  }
}
