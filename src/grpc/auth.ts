import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http2';

/** Anybody may ask whether the server is well: probes carry no token. */
const OPEN = '/grpc.health.v1.Health/';

/** Compares bearer tokens without telling how much of one was right. */
export class TokenCheck {
  readonly #digest: Buffer | undefined;

  constructor(token: string | undefined) {
    this.#digest = token === undefined ? undefined : digest(token);
  }

  admits(path: string, headers: IncomingHttpHeaders | NodeJS.Dict<string | string[]>): boolean {
    if (!this.#digest || path.startsWith(OPEN)) return true;
    const match = /^Bearer +(\S+)$/i.exec(String(headers.authorization ?? ''));
    return match !== null && timingSafeEqual(digest(match[1]!), this.#digest);
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
