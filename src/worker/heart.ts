import { Worker as Thread } from 'node:worker_threads';
import type { Store } from '../store/store.js';

/** A session to keep alive. */
export interface Pulse {
  queue: string;
  worker: string;
  lease: number;
  beat: number;
  hung: number;
}

export interface HeartListener {
  /** The store no longer knows the session. */
  lost: () => void;
  /** The lease is about to end without a beat having got through; `true` when beats get through again. */
  late: (recovered: boolean) => void;
}

/** What goes to the thread. */
export type HeartOrder = { add: Pulse } | { remove: string } | { stop: true };
/** What comes back: a worker's name and what befell it. */
export type HeartNews = { worker: string; news: 'lost' | 'late' | 'recovered' };

export interface HeartSetup {
  url: string;
  timeout: number;
  /** Counts turns of the main loop. */
  loop: SharedArrayBuffer;
}

const LOOP_TICK = 250;
/** How long the thread may take to end by itself. */
const LAST_WORDS = 3_000;

/**
 * Keeps the sessions of this process alive. Beats come from a thread with a connection of its own, so that a busy main loop
 * does not look like death; the thread watches the main loop, so that a hung one does. Where no second connection can be
 * had (a database in memory) the main loop beats by itself.
 */
export class Heart {
  readonly #listeners = new Map<string, HeartListener>();
  readonly #own = new Map<string, NodeJS.Timeout>();
  readonly #loop = new SharedArrayBuffer(4);
  #thread: Thread | undefined;
  #ticker: NodeJS.Timeout | undefined;

  constructor(
    private readonly store: Store,
    private readonly timeout: number,
    private readonly onError: (error: Error, what: string) => void,
  ) {}

  add(pulse: Pulse, listener: HeartListener): void {
    this.#listeners.set(pulse.worker, listener);
    if (this.store.threadUrl === undefined) this.#beatHere(pulse);
    else this.#send({ add: pulse });
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
    if (thread) await endThread(thread);
  }

  #send(order: HeartOrder): void {
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
    const setup: HeartSetup = { url: this.store.threadUrl!, timeout: this.timeout, loop: this.#loop };
    const thread = new Thread(new URL('./heart-thread.js', import.meta.url), { workerData: setup });
    thread.unref();
    thread.on('message', ({ worker, news }: HeartNews) => this.#tell(worker, news));
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

  #tell(worker: string, news: HeartNews['news']): void {
    const listener = this.#listeners.get(worker);
    if (!listener) return;
    if (news === 'lost') listener.lost();
    else listener.late(news === 'recovered');
  }

  #beatHere({ queue, worker, lease, beat }: Pulse): void {
    const timer = setInterval(() => {
      this.store.beat([{ queue, worker, lease }]).then(
        ([alive]) => {
          if (!alive) this.#tell(worker, 'lost');
        },
        (error: Error) => this.onError(error, 'heartbeat'),
      );
    }, beat);
    this.#own.set(worker, timer.unref());
  }
}

/**
 * The thread ends by itself, between two calls to its store: one that is stopped in the middle of a call into the SQLite
 * library takes the whole process down with it.
 */
async function endThread(thread: Thread): Promise<void> {
  thread.ref();
  thread.postMessage({ stop: true } satisfies HeartOrder);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LAST_WORDS);
  });
  await Promise.race([new Promise((resolve) => thread.once('exit', resolve)), late]);
  clearTimeout(timer);
  await thread.terminate();
}
