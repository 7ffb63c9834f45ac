import type { RingLayout, RingStore } from './store.js';
import type { Target } from './url.js';

/** Each kind of store loads only what it needs, and connects on first use. */
export async function openRingStore(target: Target, layout: RingLayout): Promise<RingStore> {
  if (target.kind === 'sqlite') {
    const { SqliteRing } = await import('./sqlite.js');
    return new SqliteRing(target.file, layout);
  }
  if (target.kind === 'postgres') {
    const { PostgresRing } = await import('./postgres.js');
    return new PostgresRing(target.url, layout);
  }
  const { RedisRing } = await import('./redis/store.js');
  if (target.kind === 'socket') {
    const { Connection } = await import('./redis/connection.js');
    return new RedisRing(new Connection(target), layout);
  }
  const { manyHosts } = await import('./redis/cluster.js');
  return new RedisRing(manyHosts(target, layout.prefix), layout);
}
