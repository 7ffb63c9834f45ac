import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { now } from '../process/clock.js';
import { type Connected, connect } from '../store/postgres/connect.js';
import { byteArrays } from '../store/postgres/connection/arguments.js';
import type { PostgresClient } from '../store/postgres/connection/client.js';
import type { PostgresUrl } from '../store/postgres/connection/options.js';
import { parseStoreUrl } from '../store/url.js';
import { type RingKeys, ringKeys } from './redis/keys.js';
import type { LockedItem, LockState, Look, RingLayout, RingStore } from './store.js';

/** So that a refresh does not have to wait behind a search that waits for others. */
const CONNECTIONS = 2;

/** A connection that is opened on first use, and again if that failed. */
export class LazyConnection {
  private opened: Promise<Connected> | undefined;
  private readonly parsed: PostgresUrl;

  constructor(private readonly url: string) {
    this.parsed = parseStoreUrl(url) as PostgresUrl;
  }

  open(within: number): Promise<Connected> {
    this.opened ??= connect(this.url, this.parsed, { timeout: within, connections: CONNECTIONS }).catch((error) => {
      this.opened = undefined;
      throw error;
    });
    return this.opened;
  }

  close(): void {
    this.opened?.then(
      ({ client }) => client.close(),
      () => {},
    );
  }
}

/** A ring in a schema on PostgreSQL, see sql/rings/. A lost reply to `take` leaves an item locked until its lock expires, as on Redis. */
export class PostgresRing implements RingStore {
  private readonly connection: LazyConnection;
  private readonly keys: RingKeys;
  private readonly expiry: number;

  constructor(url: string, layout: RingLayout) {
    this.connection = new LazyConnection(url);
    this.keys = ringKeys(layout.prefix, layout.lockName);
    this.expiry = Math.round(layout.expiryMs);
  }

  async take(token: Buffer, from: number, count: number, within: number): Promise<Look> {
    const { list, lockStart } = this.keys;
    const args = [list, lockStart, token, this.expiry, from, count, hostname(), process.pid];
    const client = await this.client(within);
    const asked = now();
    const [row] = await client.rows('take_ring_item', args, true, within);
    const item = (row!.item as Buffer | null) ?? undefined;
    return { length: row!.length as number, next: row!.next as number, item, asked };
  }

  async refresh(held: readonly LockedItem[], within: number): Promise<LockState[]> {
    const locks = held.map(({ item }) => this.key(item));
    const args = [byteArrays(locks), byteArrays(held.map(({ token }) => token)), this.expiry];
    const states = await (await this.client(within)).value('refresh_ring_locks', args, true, within);
    return String(states).slice(1, -1).split(',') as LockState[];
  }

  async retake({ item, token }: LockedItem, within: number): Promise<boolean> {
    const args = [this.key(item), token, this.expiry, hostname(), process.pid];
    return (await (await this.client(within)).value('retake_ring_item', args, true, within)) === true;
  }

  async release({ item, token }: LockedItem, rest: number, within: number): Promise<boolean> {
    const client = await this.client(within);
    const args = [this.key(item), token, Math.round(rest)];
    const { rows, repeated } = await client.run('release_ring_lock', args, true, within);
    return repeated || rows[0]!.release_ring_lock === true;
  }

  async add(items: readonly Buffer[], within: number): Promise<number> {
    const { list, lockStart } = this.keys;
    const client = await this.client(within);
    return (await client.value('add_ring_items', [list, lockStart, byteArrays(items)], false, within)) as number;
  }

  async remove(item: Buffer, within: number): Promise<number> {
    const client = await this.client(within);
    return (await client.value('remove_ring_item', [this.keys.list, item], true, within)) as number;
  }

  async items(within: number): Promise<Buffer[]> {
    const client = await this.client(within);
    const query = 'select item from crore.ring_items where ring = $1 order by position';
    return (await client.read(query, [this.keys.list], within)).map(({ item }) => item as Buffer);
  }

  close(): void {
    this.connection.close();
  }

  private key(item: Buffer): Buffer {
    return createHash('sha256').update(this.keys.lock(item)).digest();
  }

  private async client(within: number): Promise<PostgresClient> {
    return (await this.connection.open(within)).client;
  }
}
