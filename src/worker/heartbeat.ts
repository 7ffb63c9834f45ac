import { Worker as Thread } from 'node:worker_threads';
import type { Store } from '../store/store.js';
import {
  GATE,
  type HeartbeatCommand,
  type HeartbeatReply,
  type HeartbeatSetup,
  type WatchedSession,
} from './heartbeat-messages.js';

export interface HeartbeatListener {
  /** The store no longer knows the session. */
  lost: () => void;
  /** The lease is about to end without a beat having got through; `true` when beats get through again. */
  late: (recovered: boolean) => void;
}

const LOOP_TICK = 250;
/** Time for the thread to end by itself. */
const PATIENCE = 2_000;

/**
 * Keeps the sessions of this process alive. Beats come from a thread with a connection of its own, so that a busy main loop
 * does not look like death; the thread watches the main loop, so that a hung one does. Where no second connection can be
 * had (a database in memory) the main loop beats by itself.
 */
export class Heartbeat {
  readonly #listeners = new Map<string, HeartbeatListener>();
  readonly #own = new Map<string, NodeJS.Timeout>();
  readonly #loop = new SharedArrayBuffer(4);
  #thread: Thread | undefined;
  #gate = new SharedArrayBuffer(4);
  #ticker: NodeJS.Timeout | undefined;

  constructor(
    private readonly store: Store,
    private readonly timeout: number,
    private readonly onError: (error: Error, what: string) => void,
  ) {}

  add(session: WatchedSession, listener: HeartbeatListener): void {
    this.#listeners.set(session.worker, listener);
    if (this.store.threadUrl === undefined) this.#beatHere(session);
    else this.#send({ add: session });
  }

  remove(worker: string): void {
    this.#listeners.delete(worker);
    clearInterval(this.#own.get(worker));
    this.#own.delete(worker);
    if (this.#thread) this.#send({ remove: worker });
    if (this.#listeners.size === 0) this.#quiet();
  }

  /** Ends the thread and waits for it. */
  async close(): Promise<void> {
    for (const worker of [...this.#listeners.keys()]) this.remove(worker);
    const thread = this.#thread;
    this.#thread = undefined;
    if (thread) await this.#end(thread);
  }

  /**
   * A thread that has not touched its store is simply terminated. Any other ends by itself, for to be terminated within a
   * call of the SQLite driver would abort the whole process; one that waits for a distant store is not waited for.
   */
  async #end(thread: Thread): Promise<void> {
    if (Atomics.compareExchange(new Int32Array(this.#gate), 0, GATE.open, GATE.shut) === GATE.open) {
      await thread.terminate();
      return;
    }
    const gone = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
    thread.ref();
    thread.postMessage({ stop: true } satisfies HeartbeatCommand);
    const timer = setTimeout(() => void thread.terminate(), PATIENCE);
    await gone;
    clearTimeout(timer);
  }

  #send(order: HeartbeatCommand): void {
    this.#thread ??= this.#start();
    this.#thread.postMessage(order);
    if (this.#ticker === undefined && this.#listeners.size > 0) {
      const turns = new Int32Array(this.#loop);
      this.#ticker = setInterval(() => Atomics.add(turns, 0, 1), LOOP_TICK).unref();
    }
  }

  #quiet(): void {
    clearInterval(this.#ticker);
    this.#ticker = undefined;
  }

  #start(): Thread {
    this.#gate = new SharedArrayBuffer(4);
    const { timeout } = this;
    const setup: HeartbeatSetup = { url: this.store.threadUrl!, timeout, loop: this.#loop, gate: this.#gate };
    const thread = new Thread(new URL('./heartbeat-thread.js', import.meta.url), { workerData: setup });
    thread.unref();
    thread.on('message', ({ worker, news }: HeartbeatReply) => this.#tell(worker, news));
    thread.on('error', (error) => this.onError(error, 'heartbeat thread'));
    thread.on('exit', () => this.#gone(thread));
    return thread;
  }

  /** A thread that ended by itself: every session is at risk, so its owner has to open a new one. */
  #gone(thread: Thread): void {
    if (this.#thread !== thread) return;
    this.#thread = undefined;
    for (const listener of [...this.#listeners.values()]) listener.lost();
  }

  #tell(worker: string, news: HeartbeatReply['news']): void {
    const listener = this.#listeners.get(worker);
    if (!listener) return;
    if (news === 'lost') listener.lost();
    else listener.late(news === 'recovered');
  }

  #beatHere({ queue, worker, lease, beat }: WatchedSession): void {
    const timer = setInterval(() => {
      this.store.heartbeat([{ queue, worker, lease }]).then(
        ([alive]) => {
          if (!alive) this.#tell(worker, 'lost');
        },
        (error: Error) => this.onError(error, 'heartbeat'),
      );
    }, beat);
    this.#own.set(worker, timer.unref());
  }
}
