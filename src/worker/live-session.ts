import { randomBytes } from 'node:crypto';
import type { Store, WorkerSession } from '../store/store.js';
import type { Heartbeat } from './heartbeat.js';

const REJOIN_PAUSE = 250;

export interface LiveSessionSetup {
  store: Store;
  heartbeat: Heartbeat;
  queue: string;
  /** What the name of each session begins with. */
  name: string;
  /** What others may read about this worker. */
  info: object;
  lease: number;
  /** Milliseconds between heartbeats, and after which a main loop that stands still counts as hung. */
  beat: number;
  hung: number;
  joined: () => void;
  /** The session is gone, and with it its leases; a new one is on its way. */
  lost: (session: WorkerSession, why: string) => void;
  /** The lease is about to end without a heartbeat having got through; `true` when they get through again. */
  late: (recovered: boolean) => void;
  /** The queue could not be joined and will be tried again. */
  failed: (error: Error) => void;
}

/**
 * The session of a worker at a queue: joined, kept alive by heartbeats, replaced under a new name when it is lost.
 *
 *    joining ──▶ joined ──▶ lost ──▶ joining, with a new name
 *       └───────────┴── close() ──▶ left
 */
export class LiveSession {
  #session: WorkerSession;
  #joined = false;
  #closed = false;
  #joining: Promise<void>;

  constructor(private readonly setup: LiveSessionSetup) {
    this.#session = this.#newSession();
    this.#joining = this.#join();
  }

  /** The name of the session, whether it is joined yet or not. */
  get worker(): string {
    return this.#session.worker;
  }

  /** The session to claim for, or undefined while there is none. */
  get current(): WorkerSession | undefined {
    return this.#joined && !this.#closed ? this.#session : undefined;
  }

  /** Resolves when the attempt to join that is under way has come to an end. */
  get joining(): Promise<void> {
    return this.#joining;
  }

  /** The store does not know this session any more. */
  lose(session: WorkerSession, why: string): void {
    if (session !== this.#session || this.#closed) return;
    this.setup.heartbeat.remove(session.worker);
    this.#joined = false;
    this.setup.lost(session, why);
    this.#session = this.#newSession();
    this.#joining = this.#join();
  }

  /** Joins no more; the session stays until `leave`. */
  close(): void {
    this.#closed = true;
  }

  async leave(): Promise<void> {
    this.close();
    this.setup.heartbeat.remove(this.#session.worker);
    await this.setup.store.leave(this.setup.queue, this.#session.worker).catch(() => {}); // it expires by itself
  }

  #newSession(): WorkerSession {
    const { queue, name, lease } = this.setup;
    return { queue, worker: `${name}-${randomBytes(4).toString('hex')}`, lease };
  }

  async #join(): Promise<void> {
    const { store, heartbeat, queue, lease, beat, hung, info } = this.setup;
    const session = this.#session;
    while (!this.#closed) {
      try {
        await store.join(queue, session.worker, { lease, info: JSON.stringify({ ...info, since: Date.now() }) });
        break;
      } catch (error) {
        this.setup.failed(error as Error);
        await new Promise((resolve) => setTimeout(resolve, REJOIN_PAUSE));
      }
    }
    if (this.#closed) return;
    heartbeat.add(
      { ...session, beat, hung },
      { lost: () => this.lose(session, 'its heartbeat came too late'), late: this.setup.late },
    );
    this.#joined = true;
    this.setup.joined();
  }
}
