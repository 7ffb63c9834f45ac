import { randomBytes } from 'node:crypto';
import { returnLease } from '../../engine/raw-task.js';
import type { Entry } from '../../job/job.js';
import type { Signal, WorkerSession } from '../../store/store.js';
import { ClaimTrigger } from '../../worker/claim-trigger.js';
import type { ServerContext } from '../context.js';

interface Hooks {
  work: () => void;
  cancelled: (token: string) => void;
  lost: (queue: StreamQueue) => void;
  /** Called when signals may have been missed. */
  reset: (queue: StreamQueue) => void;
}

/** One queue of a worker's stream: its session, and whether it may have work. */
export class StreamQueue {
  #session: WorkerSession;
  #unsubscribe = () => {};
  readonly #trigger: ClaimTrigger;
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
    this.#trigger = new ClaimTrigger(context.engine.store, () => hooks.work());
  }

  get session(): WorkerSession {
    return this.#session;
  }

  /** Whether a claim may find something. */
  get open(): boolean {
    return this.#trigger.isOpen && this.#trigger.claims === 0 && !this.#closed;
  }

  async join(): Promise<void> {
    const { store } = this.context.engine;
    const { queue, worker, lease } = this.#session;
    const info = JSON.stringify({ interface: 'crore.v1', since: Date.now() });
    await store.join(queue, worker, { lease, info });
    this.#unsubscribe();
    this.#unsubscribe = store.subscribe(queue, (signal) => this.#onSignal(signal));
    this.#trigger.wake();
  }

  /** A lost session's name must not be used again. */
  async rejoin(): Promise<void> {
    this.hooks.lost(this);
    const { worker } = this.#session;
    this.#session = { ...this.#session, worker: `${worker.slice(0, -9)}-${randomBytes(4).toString('hex')}` };
    await this.join();
  }

  /** Claims up to n entries; returns none when the store does not answer. */
  async claim(n: number): Promise<Entry[]> {
    const { engine, log } = this.context;
    try {
      const claim = await this.#trigger.claim(() => engine.store.claim(this.#session, n));
      if (claim.status === 'lost' && !this.#closed) await this.rejoin();
      return claim.entries;
    } catch (error) {
      log.error({ err: error, queue: this.queue }, 'jobs could not be claimed');
      return [];
    }
  }

  giveBack(entries: readonly Entry[]): void {
    const { engine, log } = this.context;
    const settlements = entries.map(returnLease);
    this.#giving = Promise.all([this.#giving, engine.store.settle(this.queue, settlements)]).catch((error) => {
      log.warn({ err: error, queue: this.queue }, 'jobs could not be given back: their leases run out');
    });
  }

  async leave(): Promise<void> {
    this.#closed = true;
    this.#trigger.close();
    this.#unsubscribe();
    await this.#giving;
    await this.context.engine.store.leave(this.queue, this.#session.worker).catch(() => {}); // it expires by itself
  }

  #onSignal(signal: Signal): void {
    if (signal.type === 'work' || signal.type === 'reset') this.#trigger.wake();
    else if (signal.type === 'cancelled') this.hooks.cancelled(signal.token);
    if (signal.type === 'reset') this.hooks.reset(this);
  }
}
