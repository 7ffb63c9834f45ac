import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { SERVER_SESSION, type WorkerSession } from '../store/store.js';
import type { ServerContext } from './context.js';

const PAUSE = 250;
const HUNG = 60_000;

/** This server's session on a queue whose jobs it hands on to others, kept alive and replaced when it is lost. */
export class ServerSession {
  #session: WorkerSession;
  #joined = false;
  #closed = false;

  constructor(
    private readonly context: ServerContext,
    private readonly queue: string,
    private readonly ready: () => void,
  ) {
    this.#session = this.#name();
    void this.#join();
  }

  /** The session to claim for, or undefined while there is none. */
  get session(): WorkerSession | undefined {
    return this.#joined && !this.#closed ? this.#session : undefined;
  }

  /** The store does not know the session any more: its leases are gone, a new one is opened. */
  lost(session: WorkerSession): void {
    if (session !== this.#session || this.#closed) return;
    this.context.log.warn({ queue: this.queue, worker: session.worker }, 'the session of this server was lost');
    this.context.heartbeat.remove(session.worker);
    this.#joined = false;
    this.#session = this.#name();
    void this.#join();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.context.heartbeat.remove(this.#session.worker);
    await this.context.engine.store.leave(this.queue, this.#session.worker).catch(() => {}); // it expires by itself
  }

  #name(): WorkerSession {
    const worker = `${SERVER_SESSION}${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
    return { queue: this.queue, worker, lease: this.context.lease };
  }

  async #join(): Promise<void> {
    const { engine, heartbeat, log, lease, heartbeatEvery: beat } = this.context;
    const session = this.#session;
    const info = JSON.stringify({ host: hostname(), pid: process.pid, door: 'lakh', since: Date.now() });
    while (!this.#closed) {
      try {
        await engine.store.join(this.queue, session.worker, { lease, info });
        break;
      } catch (error) {
        log.error({ err: error, queue: this.queue }, 'the queue could not be joined');
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
      }
    }
    if (this.#closed) return;
    heartbeat.add({ ...session, beat, hung: HUNG }, { lost: () => this.lost(session), late: () => {} });
    this.#joined = true;
    this.ready();
  }
}
