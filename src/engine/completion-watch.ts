import { CroreError } from '../errors.js';
import { isTerminal, type Job } from '../job/job.js';
import type { Engine } from './engine.js';

interface Waiter {
  settle: (job: Job | undefined) => void;
  fail: (error: Error) => void;
}

interface Watch {
  /** Ids to query in this turn of the event loop. */
  fresh: string[];
  ids: Map<string, Set<Waiter>>;
  stop: () => void;
  timer: NodeJS.Timeout;
}

const SLOW_POLL = 1_000;
const PAGE = 500;

/**
 * Waits for jobs to end, in whichever process they run. Signals make it prompt; a slow poll makes it reliable despite lost
 * messages and reconnects.
 */
export class CompletionWatch {
  readonly #watches = new Map<string, Watch>();
  #closed = false;

  constructor(private readonly engine: Engine) {}

  /** Resolves with the ended job, or with undefined when its record is gone. Rejects with TIMEOUT. */
  wait(queue: string, id: string, timeout: number | undefined): Promise<Job | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new CroreError('CLOSED', 'the connection has been closed');
      const watch = this.#watch(queue);
      const finish = () => {
        clearTimeout(timer);
        this.#drop(queue, id, waiter);
      };
      const waiter: Waiter = {
        settle: (job) => {
          finish();
          resolve(job);
        },
        fail: (error) => {
          finish();
          reject(error);
        },
      };
      const late = () =>
        waiter.fail(new CroreError('TIMEOUT', `job '${id}' of queue '${queue}' did not end within ${timeout} ms`));
      const timer = timeout === undefined ? undefined : setTimeout(late, Math.min(timeout, 2 ** 31 - 1));
      const others = watch.ids.get(id);
      if (others) others.add(waiter);
      else watch.ids.set(id, new Set([waiter]));
      this.#askSoon(queue, watch, id);
    });
  }

  close(): void {
    this.#closed = true;
    for (const [, watch] of this.#watches) {
      const waiters = [...watch.ids.values()].flatMap((set) => [...set]);
      for (const waiter of waiters)
        waiter.fail(new CroreError('CLOSED', 'the connection was closed while waiting for a job'));
    }
  }

  #watch(queue: string): Watch {
    const known = this.#watches.get(queue);
    if (known) return known;
    const ids: Watch['ids'] = new Map();
    const stop = this.engine.store.subscribe(queue, (signal) => {
      if (signal.type === 'finished' && ids.has(signal.id)) this.#look(queue, [signal.id]);
      else if (signal.type === 'reset') this.#ask(queue, [...ids.keys()]);
    });
    // Not unref'd: a caller is waiting, so the process has to stay alive.
    const timer = setInterval(() => this.#ask(queue, [...ids.keys()]), SLOW_POLL);
    const watch: Watch = { ids, fresh: [], stop, timer };
    this.#watches.set(queue, watch);
    return watch;
  }

  #drop(queue: string, id: string, waiter: Waiter): void {
    const watch = this.#watches.get(queue);
    const set = watch?.ids.get(id);
    if (!watch || !set) return;
    set.delete(waiter);
    if (set.size === 0) watch.ids.delete(id);
    if (watch.ids.size > 0) return;
    watch.stop();
    clearInterval(watch.timer);
    this.#watches.delete(queue);
  }

  /** Batches the queries of waits that start in the same turn. */
  #askSoon(queue: string, watch: Watch, id: string): void {
    watch.fresh.push(id);
    if (watch.fresh.length > 1) return;
    setImmediate(() => this.#ask(queue, watch.fresh.splice(0)));
  }

  /** Subscribes first and reads afterwards, so that the read catches a job that ended in between. */
  #ask(queue: string, ids: string[]): void {
    const { store } = this.engine;
    for (let i = 0; i < ids.length; i += PAGE) {
      const page = ids.slice(i, i + PAGE);
      store
        .watchForEnd(queue, page)
        .then(() => this.#look(queue, page))
        .catch(() => {}); // the slow poll tries again, and the caller's timeout limits the wait
    }
  }

  #look(queue: string, ids: string[]): void {
    this.engine.store
      .get(queue, ids)
      .then((jobs) => {
        jobs.forEach((job, i) => {
          if (job && !isTerminal(job.state)) return;
          for (const waiter of [...(this.#watches.get(queue)?.ids.get(ids[i]!) ?? [])]) waiter.settle(job);
        });
      })
      .catch(() => {});
  }
}
