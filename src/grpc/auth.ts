import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http2';

/** Health checks need no token, because probes send none. */
const OPEN = '/grpc.health.v1.Health/';

/** Compares bearer tokens without revealing how much of one was correct. */
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
