import type { Target } from '../url.js';

/** A ring as somebody sees it who looks on. */
export interface InspectedRing {
  /** The name of its list. */
  list: string;
  items: number;
  locked: number;
  /** How many items, from the right end, were looked at for `locked`; absent if all were. */
  looked?: number;
}

export interface InspectedItem {
  item: Buffer;
  holder?: InspectedHolder;
}

/** Other programs that share a ring say nothing about themselves: their locks have only a token. */
export interface InspectedHolder {
  token: Buffer;
  until: number;
  host?: string;
  pid?: number;
  since?: number;
  /** Nobody works on the item: it is left alone until then. */
  resting?: boolean;
}

/** Reads the rings of a database, and changes nothing. */
export interface RingInspector {
  /** The rings that are or were in use lately, by name. */
  rings(most: number): Promise<{ rings: InspectedRing[]; more: boolean }>;
  /** Undefined for a list that is not known as a ring. */
  ring(list: string): Promise<InspectedRing | undefined>;
  /** A page of items from the left. */
  items(list: string, from: number, count: number): Promise<InspectedItem[]>;
  /** Locked items from the right end, where the items taken last are. */
  held(list: string, most: number): Promise<InspectedItem[]>;
  close(): void;
}

/** Items at the right end that are looked at for locks: in one ring, and in all rings of a list together. */
export const [LOOKED, LOOKED_TOGETHER] = [2_000, 20_000];

/** How many items of each ring are looked at when there are so many rings. */
export function lookedEach(rings: number): number {
  return Math.min(LOOKED, Math.max(100, Math.floor(LOOKED_TOGETHER / Math.max(1, rings))));
}

export async function openInspector(target: Target): Promise<RingInspector> {
  if (target.kind === 'sqlite') {
    const { SqliteInspector } = await import('./sqlite.js');
    return new SqliteInspector(target.file);
  }
  if (target.kind === 'postgres') {
    const { PostgresInspector } = await import('./postgres.js');
    return new PostgresInspector(target.url);
  }
  const { RedisInspector } = await import('./redis.js');
  if (target.kind === 'socket') {
    const { Connection } = await import('../redis/connection.js');
    return new RedisInspector(new Connection(target));
  }
  const { connectMany } = await import('../redis/cluster.js');
  return new RedisInspector(connectMany(target));
}
