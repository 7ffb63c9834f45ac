import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { Access } from '../api.js';
import { FailedLogIns } from './failed-log-ins.js';

export interface Tokens {
  /** The token that allows everything. */
  write?: string;
  /** The token that allows looking only. */
  read?: string;
}

/** How long a log-in lasts, in milliseconds. */
const LASTS = 12 * 3_600_000;
const COOKIE = 'crore_session';

/**
 * Log-ins with the tokens of the server. The cookie holds what it allows, until when, and a proof that this server, or another with the
 * same tokens, made it: nothing is stored, a restart ends no log-in, and a new token ends all.
 */
export class LogIns {
  readonly #digests: readonly (readonly [Access, Buffer])[];
  readonly #key: Buffer;
  readonly #failures: FailedLogIns;

  constructor(
    tokens: Tokens,
    /** The path of the dashboard, and whether it is served with TLS. */
    private readonly place: { base: string; secure: boolean },
    private readonly now: () => number = Date.now,
  ) {
    const known = [['write', tokens.write] as const, ['read', tokens.read] as const];
    this.#digests = known.flatMap(([access, token]) => (token === undefined ? [] : [[access, digest(token)] as const]));
    this.#failures = new FailedLogIns(now);
    this.#key = Buffer.from(hkdfSync('sha256', JSON.stringify(known), '', 'crore dashboard session', 32));
  }

  /** What a request may do, by its bearer token or its cookie; undefined if nothing. */
  accessOf(headers: Headers): Access | undefined {
    const bearer = /^Bearer +(\S+)$/i.exec(headers.get('authorization') ?? '')?.[1];
    if (bearer !== undefined) return this.#accessOfToken(bearer);
    const cookie = new RegExp(`(?:^|;\\s*)${COOKIE}=([^;]*)`).exec(headers.get('cookie') ?? '')?.[1];
    return cookie === undefined ? undefined : this.#accessOfCookie(cookie);
  }

  /** The cookie for a token; undefined if the token is wrong, `wait` if too many wrong ones came from this address. */
  logIn(token: string, address: string): string | 'wait' | undefined {
    if (this.#failures.areTooMany(address)) return 'wait';
    const access = this.#accessOfToken(token);
    if (access === undefined) {
      this.#failures.add(address);
      return undefined;
    }
    const claim = `${access}.${this.now() + LASTS}`;
    return this.#cookie(`${claim}.${this.#proof(claim)}`, LASTS / 1_000);
  }

  /** The cookie that ends a log-in. */
  logOut(): string {
    return this.#cookie('', 0);
  }

  #accessOfToken(token: string): Access | undefined {
    const given = digest(token);
    return this.#digests.find(([, known]) => timingSafeEqual(given, known))?.[0];
  }

  #accessOfCookie(cookie: string): Access | undefined {
    const match = /^((read|write)\.(\d{1,16}))\.([\w-]{43})$/.exec(cookie);
    if (!match) return undefined;
    const [, claim, access, until, proof] = match as unknown as [string, string, Access, string, string];
    if (!timingSafeEqual(Buffer.from(proof), Buffer.from(this.#proof(claim)))) return undefined;
    return Number(until) > this.now() ? access : undefined;
  }

  #proof(claim: string): string {
    return createHmac('sha256', this.#key).update(claim).digest('base64url');
  }

  #cookie(value: string, seconds: number): string {
    const { base, secure } = this.place;
    return `${COOKIE}=${value}; Path=${base}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`;
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
