import type { LockedItem } from '../store.js';
import type { Link } from './connection.js';
import { RINGS, type RingKeys } from './keys.js';
import { REGISTER } from './scripts.js';

/** How often a process says that a ring is in use, in milliseconds. */
const EVERY = 60_000;
/** A ring that nobody has used for this many milliseconds is dropped from the registry, and so are the oldest of too many. */
const [KEPT, MOST] = [30 * 24 * 3_600_000, 1_000];

/** What a holder says about itself, as JSON. */
export interface HolderText {
  /** In hexadecimal. */
  token: string;
  host: string;
  pid: number;
  since: number | undefined;
  resting: boolean;
}

/**
 * Tells people who look on which rings there are and who holds what. Nothing waits for its commands and nothing depends
 * on them: they go behind those of the ring, and a refusal (by an access list, by a replica) is ignored. They are not
 * part of the scripts of the ring, because a user who may not write them could not use the ring then.
 */
export class Announcer {
  private readonly since = new Map<string, number>();
  private registered = Number.NEGATIVE_INFINITY;
  private closed = false;
  private host: string | undefined;

  constructor(
    private readonly link: Link,
    private readonly keys: RingKeys,
    private readonly expiryMs: number,
  ) {}

  /** The ring is in use. */
  register(): void {
    const at = Date.now();
    if (at - this.registered < EVERY) return;
    this.registered = at;
    const member = JSON.stringify([this.keys.list, this.keys.lockStart]);
    this.send(['EVAL', REGISTER, '1', RINGS, String(at), member, String(at - KEPT), String(MOST)]);
  }

  taken(held: LockedItem): void {
    this.since.set(held.token.toString('latin1'), Date.now());
    void this.describe(held, this.expiryMs, false);
  }

  refreshed(held: LockedItem): void {
    void this.describe(held, this.expiryMs, false);
  }

  /** Sent before the lock is given up: what is there is ours until then. */
  released(held: LockedItem, rest: number): void {
    if (rest > 0) void this.describe(held, rest, true);
    else this.send(['DEL', this.keys.holder(held.item)]);
    this.since.delete(held.token.toString('latin1'));
  }

  close(): void {
    this.closed = true;
  }

  /** It expires with the lock that it is about; a reader compares the tokens. */
  private async describe({ item, token }: LockedItem, ms: number, resting: boolean): Promise<void> {
    const since = this.since.get(token.toString('latin1'));
    this.host ??= (await import('node:os')).hostname();
    if (!resting && !this.since.has(token.toString('latin1'))) return; // released meanwhile
    const holder: HolderText = { token: token.toString('hex'), host: this.host, pid: process.pid, since, resting };
    this.send(['SET', this.keys.holder(item), JSON.stringify(holder), 'PX', String(Math.round(ms))]);
  }

  private send(args: readonly (string | Buffer)[]): void {
    if (!this.closed) this.link.post(args);
  }
}
