import { returnLease } from '../../engine/raw-task.js';
import type { Entry } from '../../job/job.js';
import type { Signal, WorkerSession } from '../../store/store.js';
import { ClaimTrigger } from '../../worker/claim-trigger.js';
import { Session } from '../../worker/session.js';
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
  #session: Session;
  #unsubscribe = () => {};
  readonly #trigger: ClaimTrigger;
  #closed = false;
  #giving: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly context: ServerContext,
    readonly queue: string,
    /** `name` is the prefix of session names, `worker` the name of the first session. */
    private readonly stream: { name: string; worker: string; lease: number },
    private readonly hooks: Hooks,
  ) {
    this.#session = this.#newSession(stream.worker);
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
    await this.#session.join({ interface: 'crore.v1', since: Date.now() });
    this.#unsubscribe();
    this.#unsubscribe = store.subscribe(this.queue, (signal) => this.#onSignal(signal));
    this.#trigger.wake();
  }

  async rejoin(): Promise<void> {
    this.hooks.lost(this);
    this.#session = this.#newSession(Session.nameFor(this.stream.name));
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
      log.warn(
        { err: error, queue: this.queue },
        'jobs could not be returned: they stay leased until the session ends',
      );
    });
  }

  async leave(): Promise<void> {
    this.#closed = true;
    this.#trigger.close();
    this.#unsubscribe();
    await this.#giving;
    await this.#session.leave();
  }

  #newSession(worker: string): Session {
    return new Session(this.context.engine.store, this.queue, worker, this.stream.lease);
  }

  #onSignal(signal: Signal): void {
    if (signal.type === 'work' || signal.type === 'reset') this.#trigger.wake();
    else if (signal.type === 'cancelled') this.hooks.cancelled(signal.token);
    if (signal.type === 'reset') this.hooks.reset(this);
  }
}
