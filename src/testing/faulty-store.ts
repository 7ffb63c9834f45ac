import type { Lease } from '../job/job.js';
import type {
  Claim,
  NewSession,
  ProgressUpdate,
  QueueSettings,
  Settlement,
  Signal,
  Store,
  SweepOptions,
  SweepResult,
  WorkerSession,
} from '../store/store.js';

/**
 * The step at which a worker is killed. `claimed`: the store has delivered jobs, the worker never received them. `running`: the
 * handler has started. `settling`: the handler has finished, its report was never sent. `settled`: the report arrived, its answer
 * did not.
 */
export const STEPS = ['claimed', 'running', 'settling', 'settled'] as const;
export type Step = (typeof STEPS)[number];

type Listener = (signal: Signal) => void;

const NOTHING: Claim = Object.freeze({ status: 'ok', entries: [], more: false }) as Claim;
/** How many turns of the event loop a handler gets to start. */
const BEGIN = 10;

/**
 * A layer between the workers and the real store. It passes everything on until a worker is killed; from then on nothing of that
 * worker reaches the store, as if its process had been killed, while its remaining code in this process gets empty answers.
 */
export class FaultyStore {
  /** The store as the workers see it. */
  readonly store: Store;
  /** Sessions of living workers, by name. */
  readonly living = new Map<string, WorkerSession>();
  readonly dead = new Map<string, WorkerSession>();
  readonly paused = new Set<string>();
  /** When the latest claim of each queue said that more would be due. */
  readonly nextAt = new Map<string, number>();
  /** How many claims of each queue have returned nothing. */
  readonly empties = new Map<string, number>();
  /** Increases with every action of a worker. */
  activity = 0;
  /** Worker calls in flight. */
  pending = 0;
  /** Sweeps run when time moves, never by themselves. */
  sweeping = false;
  readonly #armed = new Map<string, { at: Step; died: () => void }>();
  readonly #begun = new Set<string>();
  readonly #listeners = new Map<string, Set<Listener>>();
  /** Tokens a sweep has reclaimed: their settlements come from the sweeper, not from a dead worker. */
  readonly #swept = new Set<string>();

  constructor(private readonly real: Store) {
    const own = this.#verbs();
    this.store = new Proxy(real, {
      get: (target, key) => {
        if (key in own) return own[key as keyof typeof own];
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  /** Kills a worker at its next such step; `died` is called at that moment. */
  arm(worker: string, at: Step, died: () => void): void {
    this.#armed.set(worker, { at, died });
  }

  /** From now on, nothing of this worker reaches the store. */
  cut(worker: string): void {
    const session = this.living.get(worker);
    if (!session) return;
    this.living.delete(worker);
    this.dead.set(worker, session);
    this.activity += 1;
    const armed = this.#armed.get(worker);
    this.#armed.delete(worker);
    armed?.died();
  }

  /** Stops the handlers of a dead worker: their results will not count. */
  async silence(worker: string): Promise<void> {
    const { queue } = this.dead.get(worker)!;
    for (const { token } of await this.real.leasesOf(queue, worker)) this.signal(queue, { type: 'cancelled', token });
  }

  signal(queue: string, signal: Signal): void {
    for (const listener of [...(this.#listeners.get(queue) ?? [])]) listener(signal);
  }

  #verbs(): Partial<Store> {
    return {
      threadUrl: undefined, // a separate thread would send heartbeats in real time
      join: (queue, worker, session) => this.#join(queue, worker, session),
      leave: (queue, worker, onlyIfExpired) => this.#leave(queue, worker, onlyIfExpired),
      heartbeat: (sessions) => this.#beat(sessions),
      claim: (session, n) => this.#count(() => this.#claim(session, n)),
      settle: (queue, settlements) => this.#count(() => this.#settle(queue, settlements)),
      recordProgress: (queue, lease, note) => this.#note(queue, lease, note),
      leasesOf: async (queue, worker) => (this.dead.has(worker) ? [] : this.real.leasesOf(queue, worker)),
      sweep: (queue, options) => this.#sweep(queue, options),
      configure: (queue, settings) => this.#configure(queue, settings),
      subscribe: (queue, listener) => this.#listen(queue, listener),
    };
  }

  async #count<T>(call: () => Promise<T>): Promise<T> {
    this.pending += 1;
    try {
      return await call();
    } finally {
      this.pending -= 1;
    }
  }

  #join(queue: string, worker: string, session: NewSession): Promise<void> {
    if (this.dead.has(worker)) return Promise.resolve();
    this.living.set(worker, { queue, worker, lease: session.lease });
    this.activity += 1;
    return this.#count(() => this.real.join(queue, worker, session));
  }

  async #leave(queue: string, worker: string, onlyIfExpired?: boolean): Promise<void> {
    if (this.dead.has(worker)) return;
    this.living.delete(worker);
    this.activity += 1;
    await this.real.leave(queue, worker, onlyIfExpired);
  }

  async #beat(sessions: readonly WorkerSession[]): Promise<boolean[]> {
    const alive = await this.real.heartbeat(sessions.filter(({ worker }) => !this.dead.has(worker)));
    return sessions.map(({ worker }) => this.dead.has(worker) || alive.shift() === true);
  }

  async #claim(session: WorkerSession, n: number): Promise<Claim> {
    const { worker } = session;
    // A worker that is about to die claims nothing more.
    if (this.dead.has(worker) || this.#begun.has(worker)) return NOTHING;
    const claim = await this.real.claim(session, n);
    this.#remember(session.queue, claim);
    if (this.dead.has(worker)) return NOTHING;
    if (claim.entries.length === 0) return claim;
    this.activity += 1;
    const at = this.#armed.get(worker)?.at;
    if (at === 'claimed') {
      this.cut(worker);
      return NOTHING;
    }
    if (at === 'running') this.#begin(worker);
    return claim;
  }

  #remember(queue: string, { nextAt, entries }: Claim): void {
    if (nextAt === undefined) this.nextAt.delete(queue);
    else this.nextAt.set(queue, nextAt);
    if (entries.length === 0) this.empties.set(queue, (this.empties.get(queue) ?? 0) + 1);
  }

  /** The handler starts as soon as the claim is answered; if it ends first, its end is not reported. */
  #begin(worker: string): void {
    this.#begun.add(worker);
    let turns = 0;
    const turn = () => {
      turns += 1;
      if (turns < BEGIN && this.living.has(worker)) setImmediate(turn);
      else this.cut(worker);
    };
    setImmediate(turn);
  }

  async #settle(queue: string, settlements: readonly Settlement[]): Promise<boolean[]> {
    const [first] = settlements;
    if (!first || this.#isSweepers(settlements)) return this.#settleSwept(queue, settlements);
    const { worker } = first.lease;
    const at = this.#armed.get(worker)?.at;
    if (at === 'settling' || (at === 'running' && this.#begun.has(worker))) this.cut(worker);
    if (this.dead.has(worker)) return settlements.map(() => true);
    const applied = await this.real.settle(queue, settlements);
    this.activity += 1;
    if (at === 'settled') this.cut(worker);
    return applied;
  }

  /** A worker that still runs a job whose reservation has ended has to be notified. */
  async #settleSwept(queue: string, settlements: readonly Settlement[]): Promise<boolean[]> {
    const applied = await this.real.settle(queue, settlements);
    this.signal(queue, { type: 'reset' });
    return applied;
  }

  #isSweepers(settlements: readonly Settlement[]): boolean {
    return settlements.filter(({ lease }) => this.#swept.delete(lease.token)).length > 0;
  }

  #note(queue: string, lease: Lease, note: ProgressUpdate): Promise<boolean> {
    return this.dead.has(lease.worker) ? Promise.resolve(false) : this.real.recordProgress(queue, lease, note);
  }

  async #sweep(queue: string, options: SweepOptions): Promise<SweepResult> {
    if (!this.sweeping) return { lost: [], more: false };
    const sweep = await this.real.sweep(queue, { ...options, every: 0 });
    for (const { lease } of sweep.lost) this.#swept.add(lease.token);
    return sweep;
  }

  #configure(queue: string, settings: Partial<QueueSettings>): Promise<void> {
    if (settings.paused === true) this.paused.add(queue);
    else if (settings.paused === false) this.paused.delete(queue);
    return this.real.configure(queue, settings);
  }

  #listen(queue: string, listener: Listener): () => void {
    const set = this.#listeners.get(queue) ?? new Set();
    this.#listeners.set(queue, set.add(listener));
    const stop = this.real.subscribe(queue, listener);
    return () => {
      set.delete(listener);
      stop();
    };
  }
}
