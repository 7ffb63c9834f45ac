import { Worker as Thread } from 'node:worker_threads';
import type { Store } from '../../store/store.js';
import {
  GATE,
  type HeartbeatCommand,
  type HeartbeatReply,
  type HeartbeatSetup,
  monotonicNow,
  type WatchedSession,
} from './heartbeat-messages.js';
import { threadFlags } from './thread-flags.js';

export interface HeartbeatListener {
  /** Called when the store no longer knows the session. */
  lost: () => void;
  /**
   * Called when the lease is about to end because no heartbeat got through, and with `true` when heartbeats get through again.
   */
  late: (recovered: boolean) => void;
}

const LOOP_TICK = 250;
/** How long the thread gets to end by itself. */
const PATIENCE = 2_000;
/** How long after a thread has ended unexpectedly another one takes over the sessions of the main loop. */
const ANOTHER_THREAD = 60_000;

/** A session whose heartbeats the main loop sends. */
interface OwnSession extends WatchedSession {
  timer: NodeJS.Timeout;
}

/**
 * Keeps the sessions of this process alive. Heartbeats come from a thread with its own connection, so that a busy main loop does
 * not make the worker look dead; the thread watches the main loop, so that a hung one does. The main loop sends heartbeats itself until
 * those of the thread get through (on a busy machine a thread may take longer than a lease to start), and where no second connection is
 * possible (an in-memory database).
 */
export class Heartbeat {
  readonly #listeners = new Map<string, HeartbeatListener>();
  readonly #own = new Map<string, OwnSession>();
  readonly #loop = new SharedArrayBuffer(4);
  #thread: Thread | undefined;
  #gate = new SharedArrayBuffer(4);
  #ticker: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(
    private readonly store: Store,
    private readonly timeout: number,
    private readonly onError: (error: Error, what: string) => void,
  ) {}

  add(session: WatchedSession, listener: HeartbeatListener): void {
    this.#listeners.set(session.worker, listener);
    this.#beatHere(session);
    if (this.store.threadUrl !== undefined) this.#send({ add: session });
  }

  remove(worker: string): void {
    this.#listeners.delete(worker);
    this.#stopHere(worker);
    if (this.#thread) this.#send({ remove: worker });
    if (this.#listeners.size === 0) this.#quiet();
  }

  /** Ends the thread and waits for it. */
  async close(): Promise<void> {
    for (const worker of [...this.#listeners.keys()]) this.remove(worker);
    clearTimeout(this.#retry);
    const thread = this.#thread;
    this.#thread = undefined;
    if (thread) await this.#end(thread);
  }

  /**
   * Terminates a thread that has not touched its store. Any other thread has to end by itself, because terminating it during a
   * call of the SQLite driver would abort the whole process; one that is blocked on a remote store is terminated after a while.
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
    this.#thread?.postMessage(order);
    if (this.#ticker === undefined && this.#listeners.size > 0) {
      const turns = new Int32Array(this.#loop);
      this.#ticker = setInterval(() => Atomics.add(turns, 0, 1), LOOP_TICK).unref();
    }
  }

  #quiet(): void {
    clearInterval(this.#ticker);
    this.#ticker = undefined;
  }

  /** Undefined if no thread can start, for lack of memory for example. */
  #start(): Thread | undefined {
    try {
      return this.#startThread();
    } catch (error) {
      this.onError(error as Error, 'heartbeat thread');
      this.#tryAgainLater();
      return undefined;
    }
  }

  #startThread(): Thread {
    this.#gate = new SharedArrayBuffer(4);
    const { timeout } = this;
    const setup: HeartbeatSetup = { url: this.store.threadUrl!, timeout, loop: this.#loop, gate: this.#gate };
    const program = new URL('./heartbeat-thread.js', import.meta.url);
    const thread = new Thread(program, { workerData: setup, ...threadFlags() });
    thread.unref();
    thread.on('message', ({ worker, change }: HeartbeatReply) => this.#notify(worker, change));
    thread.on('error', (error) => this.onError(error, 'heartbeat thread'));
    thread.on('exit', () => this.#gone(thread));
    return thread;
  }

  /**
   * The thread exited unexpectedly: the sessions it had taken are at risk, so their owners have to open new ones. The others have heartbeats
   * from here, and if a thread cannot start at all, that is how it stays.
   */
  #gone(thread: Thread): void {
    if (this.#thread !== thread) return;
    this.#thread = undefined;
    this.#tryAgainLater();
    for (const [worker, listener] of [...this.#listeners]) if (!this.#own.has(worker)) listener.lost();
  }

  #tryAgainLater(): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#handOver(), ANOTHER_THREAD).unref();
  }

  #handOver(): void {
    if (this.#thread) return;
    for (const { timer: _timer, ...session } of this.#own.values()) this.#send({ add: session });
  }

  #notify(worker: string, change: HeartbeatReply['change']): void {
    const listener = this.#listeners.get(worker);
    if (!listener) return;
    if (change === 'taken') this.#stopHere(worker);
    else if (change === 'lost') listener.lost();
    else listener.late(change === 'recovered');
  }

  #beatHere(session: WatchedSession): void {
    const { queue, worker, lease, heartbeatMs } = session;
    const timer = setInterval(() => {
      const since = monotonicNow();
      this.store.heartbeat([{ queue, worker, lease }]).then(
        ([alive]) => {
          if (!alive) this.#notify(worker, 'lost');
          else this.#renewed(worker, since);
        },
        (error: Error) => this.onError(error, 'heartbeat'),
      );
    }, heartbeatMs);
    this.#own.set(worker, { ...session, timer: timer.unref() });
  }

  #renewed(worker: string, since: number): void {
    const own = this.#own.get(worker);
    if (own) own.since = since;
    this.#thread?.postMessage({ renewed: worker, since } satisfies HeartbeatCommand);
  }

  #stopHere(worker: string): void {
    clearInterval(this.#own.get(worker)?.timer);
    this.#own.delete(worker);
  }
}
