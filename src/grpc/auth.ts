import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http2';

/** Health checks need no token, because probes send none. */
const OPEN = '/grpc.health.v1.Health/';

/** What the token that allows looking only is good for, beside reflection. */
const READING = new Set(
  [
    'Info',
    'Get',
    'List',
    'Stats',
    'Count',
    'Queues',
    'Workers',
    'Dependents',
    'ListBatchMembers',
    'ListDead',
    'GetLimits',
    'GetBreaker',
    'IsPaused',
    'ListSchedules',
    'ReadEvents',
  ].map((call) => `/crore.v1.Crore/${call}`),
);
const ALSO_READING = ['/', '/metrics'];
const REFLECTION = '/grpc.reflection.';

export interface Tokens {
  /** Allows everything; absent: no token is needed. */
  write?: string;
  /** Allows looking only. */
  read?: string;
}

export interface Refusal {
  status: 'UNAUTHENTICATED' | 'PERMISSION_DENIED';
  http: 401 | 403;
  text: string;
}

const WRONG: Refusal = { status: 'UNAUTHENTICATED', http: 401, text: 'missing or wrong bearer token' };
const READ_ONLY: Refusal = { status: 'PERMISSION_DENIED', http: 403, text: 'this token allows looking only' };

type Headers = IncomingHttpHeaders | NodeJS.Dict<string | string[]>;

/** Compares bearer tokens without revealing how much of one was correct. */
export class TokenCheck {
  readonly #write: Buffer | undefined;
  readonly #read: Buffer | undefined;

  constructor({ write, read }: Tokens) {
    this.#write = write === undefined ? undefined : digest(write);
    this.#read = read === undefined ? undefined : digest(read);
  }

  /** Why a call is refused; undefined if it is not. */
  refusal(path: string, headers: Headers): Refusal | undefined {
    if (!this.#write || path.startsWith(OPEN)) return undefined;
    const match = /^Bearer +(\S+)$/i.exec(String(headers.authorization ?? ''));
    if (match === null) return WRONG;
    const given = digest(match[1]!);
    if (timingSafeEqual(given, this.#write)) return undefined;
    if (this.#read === undefined || !timingSafeEqual(given, this.#read)) return WRONG;
    return isReading(path) ? undefined : READ_ONLY;
  }
}

function isReading(path: string): boolean {
  return READING.has(path) || ALSO_READING.includes(path) || path.startsWith(REFLECTION);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
