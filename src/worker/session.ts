import { randomBytes } from 'node:crypto';
import type { Store, WorkerSession } from '../store/store.js';
import type { Heartbeat, HeartbeatListener } from './heartbeat/heartbeat.js';
import { monotonicNow } from './heartbeat/heartbeat-messages.js';

/**
 * One registration of a worker at a queue: join, heartbeat, leave. Whoever loses it opens another one, because the name of a lost
 * session must never be used again. `LiveSession`, the streams of `crore.v1` and `Worqr` are built on it.
 */
export class Session implements WorkerSession {
  #heartbeat: Heartbeat | undefined;
  #since = monotonicNow();

  constructor(
    private readonly store: Store,
    readonly queue: string,
    readonly worker: string,
    readonly lease: number,
  ) {}

  /** A name that no session has had before. */
  static nameFor(base: string): string {
    return `${base}-${randomBytes(4).toString('hex')}`;
  }

  /** `raw`: if the session is lost, its raw tasks return unchanged. */
  join(info: object, raw = false): Promise<void> {
    const { lease } = this;
    this.#since = monotonicNow();
    return this.store.join(this.queue, this.worker, { lease, info: JSON.stringify(info), ...(raw ? { raw } : {}) });
  }

  /** Keeps the session alive until it leaves. Without it, claims and `store.heartbeat` do. */
  keepAlive(heartbeat: Heartbeat, timing: { heartbeatMs: number; hung: number }, listener: HeartbeatListener): void {
    this.#heartbeat = heartbeat;
    const { queue, worker, lease } = this;
    heartbeat.add({ queue, worker, lease, ...timing, since: this.#since }, listener);
  }

  /** Sends no more heartbeats: the session is lost, or others end it. */
  stopHeartbeat(): void {
    this.#heartbeat?.remove(this.worker);
    this.#heartbeat = undefined;
  }

  async leave(): Promise<void> {
    this.stopHeartbeat();
    await this.store.leave(this.queue, this.worker).catch(() => {}); // it expires by itself
  }
}
