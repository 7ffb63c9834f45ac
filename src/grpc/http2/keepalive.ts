import { constants, type ServerHttp2Session } from 'node:http2';
import type { Log } from '../context.js';

/** Flow-control window in bytes: of one call, and of all calls of a connection together. */
export const CALL_WINDOW = 256 * 1024;
const CONNECTION_WINDOW = 1024 * 1024;

export interface Keepalive {
  /** Time between pings. */
  every: number;
  /** How long a reply may take. */
  timeout: number;
}

/** The connections of a server: pings each, and closes one that does not reply. */
export class Connections {
  readonly #all = new Set<ServerHttp2Session>();

  constructor(
    private readonly keepalive: Keepalive,
    private readonly log: Log,
  ) {}

  get size(): number {
    return this.#all.size;
  }

  add(session: ServerHttp2Session, peer: string): void {
    this.#all.add(session);
    let said = false;
    session.once('goaway', (code) => {
      said = code === constants.NGHTTP2_NO_ERROR || code === constants.NGHTTP2_CANCEL;
    });
    session.on('error', (error) => {
      // A client that disconnects on purpose says so: nothing an operator needs to know.
      if (!said) this.log.warn({ why: error.message, peer }, 'a connection was closed');
    });
    const timer = setInterval(() => this.#ping(session, peer), this.keepalive.every).unref();
    session.once('close', () => {
      clearInterval(timer);
      this.#all.delete(session);
    });
    try {
      session.setLocalWindowSize(CONNECTION_WINDOW);
    } catch {
      // it disconnected before it had started
    }
  }

  /** Lets calls finish and accepts no new ones. */
  close(): void {
    for (const session of this.#all) session.close();
  }

  destroy(): void {
    for (const session of this.#all) session.destroy();
  }

  #ping(session: ServerHttp2Session, peer: string): void {
    if (session.destroyed) return;
    const late = setTimeout(() => {
      this.log.warn({ peer }, 'a client did not answer a ping: closing its connection');
      session.destroy();
    }, this.keepalive.timeout).unref();
    try {
      const sent = session.ping(() => clearTimeout(late));
      if (!sent) clearTimeout(late);
    } catch {
      clearTimeout(late);
    }
  }
}
