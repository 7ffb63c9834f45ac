import { constants, type ServerHttp2Session } from 'node:http2';
import type { Log } from '../context.js';

/** Bytes that a call, and all calls of a connection together, may have on their way to us. */
export const CALL_WINDOW = 256 * 1024;
const CONNECTION_WINDOW = 1024 * 1024;

export interface Keepalive {
  /** Time between pings. */
  every: number;
  /** How long an answer may take. */
  timeout: number;
}

/** The connections of a server: each is pinged, and one that does not answer is closed. */
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
      // A client that goes of its own will says so: no trouble for an operator to read of.
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
      // it went away before it had begun
    }
  }

  /** Lets calls finish and takes no new ones. */
  close(): void {
    for (const session of this.#all) session.close();
  }

  destroy(): void {
    for (const session of this.#all) session.destroy();
  }

  #ping(session: ServerHttp2Session, peer: string): void {
    if (session.destroyed) return;
    const late = setTimeout(() => {
      this.log.warn({ peer }, 'a client does not answer and is cut off');
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
