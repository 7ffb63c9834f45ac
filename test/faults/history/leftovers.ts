import { Redis } from 'ioredis';
import postgres from 'postgres';
import { openDatabase } from '../../../dist/store/sqlite/file/driver.js';

/** How many rows or keys a store has of everything: compared with an empty store it tells what was left over. */
export type Inventory = Record<string, number>;

export async function inventoryOf(url: string): Promise<Inventory> {
  if (url.startsWith('sqlite:')) return sqliteRows(url.slice('sqlite:'.length));
  return url.startsWith('postgres:') ? postgresRows(url) : redisKeys(url);
}

async function postgresRows(url: string): Promise<Inventory> {
  const schema = new URL(url).searchParams.get('schema') ?? 'crore';
  const sql = postgres(url.replace(/\?.*/, ''), { max: 1, onnotice: () => {} });
  const tables = await sql`select relname from pg_class where relnamespace = ${schema}::regnamespace and relkind = 'r'`;
  const inventory: Inventory = {};
  for (const { relname } of tables) {
    const [row] = await sql`select count(*)::int as n from ${sql(schema)}.${sql(relname)}`;
    inventory[relname] = row!.n;
  }
  await sql.end({ timeout: 1 });
  return inventory;
}

function sqliteRows(file: string): Inventory {
  const db = openDatabase(file);
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
  const inventory: Inventory = {};
  for (const { name } of tables) {
    const [row] = db.prepare(`SELECT count(*) AS n FROM "${name}"`).all();
    inventory[String(name)] = Number(row!.n);
  }
  db.close();
  return inventory;
}

/** The number of entries of each key that does not expire by itself. */
async function redisKeys(url: string): Promise<Inventory> {
  const client = new Redis(url);
  const inventory: Inventory = {};
  for (const key of await client.keys('*')) {
    if ((await client.pttl(key)) === -1) inventory[key] = await sizeOf(client, key);
  }
  client.disconnect();
  return inventory;
}

async function sizeOf(client: Redis, key: string): Promise<number> {
  switch (await client.type(key)) {
    case 'hash':
      return client.hlen(key);
    case 'list':
      return client.llen(key);
    case 'set':
      return client.scard(key);
    case 'zset':
      return client.zcard(key);
    case 'stream':
      return client.xlen(key);
    default:
      return 1;
  }
}

/** What is there and was not in the empty store. */
export function leftovers(empty: Inventory, now: Inventory): string[] {
  return Object.entries(now)
    .filter(([name, size]) => size > (empty[name] ?? 0))
    .map(([name, size]) => `${name}: ${size - (empty[name] ?? 0)} left over`);
}
