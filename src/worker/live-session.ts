import type { Store, WorkerSession } from '../store/store.js';
import type { Heartbeat } from './heartbeat/heartbeat.js';
import { Session } from './session.js';

const REJOIN_PAUSE = 250;

export interface LiveSessionSetup {
  store: Store;
  heartbeat: Heartbeat;
  queue: string;
  /** Prefix of every session name. */
  name: string;
  /** Information about this worker that others can read. */
  info: object;
  lease: number;
  /** Milliseconds between heartbeats; `hung`: after how many without a turn the main loop counts as hung. */
  heartbeatMs: number;
  hung: number;
  joined: () => void;
  /** Called when the session, and with it its leases, is lost; a new one is being opened. */
  lost: (session: WorkerSession, why: string) => void;
  /** Called when the lease is about to end because no heartbeat got through, and with `true` when they get through again. */
  late: (recovered: boolean) => void;
  /** Called when joining the queue failed; it will be retried. */
  failed: (error: Error) => void;
}

/**
 * A worker's presence at a queue: a session that joins again and again, and is replaced under a new name when it is lost.
 *
 *    joining ──▶ joined ──▶ lost ──▶ joining, with a new name
 *       └───────────┴── close() ──▶ left
 */
export class LiveSession {
  #session: Session;
  #joined = false;
  #closed = false;
  #joining: Promise<void>;

  constructor(private readonly setup: LiveSessionSetup) {
    this.#session = this.#newSession();
    this.#joining = this.#join();
  }

  /** The name of the session, even before it has joined. */
  get worker(): string {
    return this.#session.worker;
  }

  /** The session to claim for, or undefined while there is none. */
  get current(): WorkerSession | undefined {
    return this.#joined && !this.#closed ? this.#session : undefined;
  }

  /** The session that was opened last, even when it is closed or lost. */
  get last(): WorkerSession {
    return this.#session;
  }

  /** Resolves when the current attempt to join is over. */
  get joining(): Promise<void> {
    return this.#joining;
  }

  /** Called when the store no longer knows this session. */
  lose(session: WorkerSession, why: string): void {
    if (session !== this.#session || this.#closed) return;
    this.#session.stopHeartbeat();
    this.#joined = false;
    this.setup.lost(session, why);
    this.#session = this.#newSession();
    this.#joining = this.#join();
  }

  /** Stops joining; the session stays until `leave`. */
  close(): void {
    this.#closed = true;
  }

  leave(): Promise<void> {
    this.close();
    return this.#session.leave();
  }

  #newSession(): Session {
    const { store, queue, name, lease } = this.setup;
    return new Session(store, queue, Session.nameFor(name), lease);
  }

  async #join(): Promise<void> {
    const { heartbeat, heartbeatMs, hung, info, late } = this.setup;
    const session = this.#session;
    while (!this.#closed) {
      try {
        await session.join({ ...info, since: Date.now() });
        break;
      } catch (error) {
        this.setup.failed(error as Error);
        await new Promise((resolve) => setTimeout(resolve, REJOIN_PAUSE));
      }
    }
    if (this.#closed) return;
    const lost = () => this.lose(session, 'its heartbeat was too late');
    session.keepAlive(heartbeat, { heartbeatMs, hung }, { lost, late });
    this.#joined = true;
    this.setup.joined();
  }
}
