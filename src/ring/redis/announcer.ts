import type { LockedItem } from '../store.js';
import type { Link } from './connection.js';
import { RINGS, type RingKeys } from './keys.js';
import { REGISTER } from './scripts.js';

/** How often a process says that a ring is in use, in milliseconds. */
const EVERY = 60_000;
/** A longer time limit than that of any other call, so that a slow answer never breaks the connection of those. */
const WITHIN = 60_000;
/** A ring that nobody has used for this many milliseconds is dropped from the registry, and so are the oldest of too many. */
const [KEPT, MOST] = [30 * 24 * 3_600_000, 1_000];

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

  /** A hash, so that it could never overwrite or pass for a lock, whatever names rings and locks have. */
  private async describe({ item, token }: LockedItem, ms: number, resting: boolean): Promise<void> {
    const key = this.keys.holder(item);
    const since = String(this.since.get(token.toString('latin1')) ?? Date.now());
    this.host ??= (await import('node:os')).hostname();
    const fields = ['token', token, 'host', this.host, 'pid', String(process.pid), 'since', since];
    this.send(['HSET', key, ...fields, 'resting', resting ? '1' : '0']);
    this.send(['PEXPIRE', key, String(Math.round(ms))]);
  }

  private send(args: readonly (string | Buffer)[]): void {
    if (!this.closed) this.link.call(args, WITHIN).catch(() => {});
  }
}
