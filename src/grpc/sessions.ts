import type { Http2Session, ServerHttp2Session } from 'node:http2';
import type { Log } from './context.js';

export interface Keepalive {
  /** Time between pings. */
  every: number;
  /** How long an answer may take. */
  timeout: number;
}

/** Bytes a connection may have on their way to us, over all its calls. */
const CONNECTION_WINDOW = 1024 * 1024;

/** The connections of a server: each is pinged, and one that does not answer is closed. */
export class Sessions {
  readonly #all = new Set<ServerHttp2Session>();

  constructor(
    private readonly keepalive: Keepalive,
    private readonly log: Log,
  ) {}

  get size(): number {
    return this.#all.size;
  }

  add(session: ServerHttp2Session): void {
    this.#all.add(session);
    session.on('error', () => {}); // 'close' follows
    const timer = setInterval(() => this.#ping(session), this.keepalive.every).unref();
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

  #ping(session: ServerHttp2Session): void {
    if (session.destroyed) return;
    const late = setTimeout(() => {
      this.log.warn({ peer: peerOf(session) }, 'a client does not answer and is cut off');
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

export function peerOf(session: Http2Session | undefined): string {
  try {
    return session?.socket.remoteAddress ?? 'unknown';
  } catch {
    return 'unknown';
  }
}
