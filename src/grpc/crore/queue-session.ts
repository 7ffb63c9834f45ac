import { returnLease } from '../../engine/raw-task.js';
import type { Entry } from '../../job/job.js';
import type { Claim, Signal, WorkerSession } from '../../store/store.js';
import { Session } from '../../worker/session.js';
import { returnLostClaim } from '../claims/lost-claims.js';
import type { Claimant, QueueClaims } from '../claims/queue-claims.js';
import type { ServerContext } from '../context.js';

interface Hooks {
  /** Reserves room for the jobs of a claim: how many the worker can take now. */
  reserve: () => number;
  /** A claim for which room was reserved is over, and brought these. */
  deliver: (queue: StreamQueue, entries: Entry[], reserved: number) => void;
  cancelled: (token: string) => void;
  lost: (queue: StreamQueue) => void;
  /** Called when signals may have been missed. */
  reset: (queue: StreamQueue) => void;
}

/** One queue of a worker's stream: its session there, for which it claims when it is its turn. */
export class StreamQueue implements Claimant {
  #session: Session;
  #claims: QueueClaims | undefined;
  #claiming = false;
  #joining = false;
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
  }

  get session(): WorkerSession {
    return this.#session;
  }

  async join(): Promise<void> {
    this.#joining = true;
    try {
      await this.#session.join({ interface: 'crore.v1', since: Date.now() });
    } finally {
      this.#joining = false;
    }
    if (this.#closed) return;
    if (this.#claims) this.#claims.add(this);
    else this.#claims = this.context.claims.join(this.queue, this);
  }

  async rejoin(): Promise<void> {
    this.hooks.lost(this);
    this.#session = this.#newSession(Session.nameFor(this.stream.name));
    await this.join();
  }

  /** The worker may have room for more jobs. */
  offer(): void {
    this.#claims?.offer(this);
  }

  /** One claim at a time. */
  claim(): Promise<Claim> | undefined {
    if (this.#closed || this.#joining || this.#claiming) return undefined;
    const room = this.hooks.reserve();
    return room > 0 ? this.#claim(room) : undefined;
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
    await this.context.claims.leave(this.queue, this);
    await this.#giving;
    await this.#session.leave();
  }

  onSignal(signal: Signal): void {
    if (signal.type === 'cancelled') this.hooks.cancelled(signal.token);
    else if (signal.type === 'reset') this.hooks.reset(this);
  }

  async #claim(room: number): Promise<Claim> {
    this.#claiming = true;
    let entries: Entry[] = [];
    const session = this.#session;
    try {
      const claim = await this.context.engine.store.claim(session, room);
      if (claim.status === 'lost' && !this.#closed && session === this.#session) await this.rejoin();
      entries = claim.entries;
      return claim;
    } catch (error) {
      returnLostClaim(this.context.engine.store, session, error, this.context.log);
      throw error;
    } finally {
      this.#claiming = false;
      this.hooks.deliver(this, entries, room);
    }
  }

  #newSession(worker: string): Session {
    return new Session(this.context.engine.store, this.queue, worker, this.stream.lease);
  }
}
