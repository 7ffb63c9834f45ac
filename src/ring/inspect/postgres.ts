import type { Row } from '../../store/postgres/connection/client.js';
import { LazyConnection } from '../postgres.js';
import { type InspectedItem, type InspectedRing, LOOKED, lookedEach, type RingInspector } from './inspector.js';

/** Timeout of every call, in milliseconds. */
const PATIENCE = 5_000;

const NOW = '(select crore.time(null))';
const KEY = "sha256(convert_to(r.lock_start, 'UTF8') || i.item)";
const ITEMS = 'crore.ring_items i where i.ring = r.name and i.position >= r.low';

/** Rings, with the number of items at the right end that are looked at. */
const look = (rings: string, looked: string) => `
select r.name, (select count(*) from ${ITEMS}) as items, t.looked, t.locked from (${rings}) r cross join lateral (
  select count(*) as looked, count(l.key) as locked from (
    select ${KEY} as key from ${ITEMS} order by i.position desc limit ${looked}::bigint
  ) k left join crore.ring_locks l on l.key = k.key and l.until > ${NOW}
) t order by r.name`;
const RINGS = look('select * from crore.rings order by name limit $1::bigint', '$2');
const RING = look('select * from crore.rings where name = $1', '$2');

/** Items of the ring $1 with their locks: $2 of them, from index $3. */
const items = (order: string, join: string) => `
select i.item, l.token, l.until, l.host, l.pid, l.since, l.resting from crore.rings r cross join lateral (
  select i.position, i.item from ${ITEMS} order by i.position ${order} limit $2::bigint offset $3::bigint
) i ${join} join crore.ring_locks l on l.key = ${KEY} and l.until > ${NOW}
where r.name = $1 order by i.position ${order}`;
const PAGE = items('asc', 'left');
const HELD = items('desc', 'inner');

/** The rings in a schema on PostgreSQL. */
export class PostgresInspector implements RingInspector {
  private readonly connection: LazyConnection;

  constructor(url: string) {
    this.connection = new LazyConnection(url);
  }

  async rings(most: number): Promise<{ rings: InspectedRing[]; more: boolean }> {
    const rows = await this.read(RINGS, most + 1, lookedEach(most));
    return { rings: rows.slice(0, most).map(ringOf), more: rows.length > most };
  }

  async ring(list: string): Promise<InspectedRing | undefined> {
    const [row] = await this.read(RING, list, LOOKED);
    return row && ringOf(row);
  }

  items(list: string, from: number, count: number): Promise<InspectedItem[]> {
    return this.page(PAGE, list, count, from);
  }

  async held(list: string, most: number): Promise<InspectedItem[]> {
    return (await this.page(HELD, list, LOOKED, 0)).slice(0, most);
  }

  close(): void {
    this.connection.close();
  }

  /** Times on our clock. */
  private async page(query: string, ...args: (string | number)[]): Promise<InspectedItem[]> {
    const { skew } = await this.connection.open(PATIENCE);
    return (await this.read(query, ...args)).map((row) => itemOf(row, skew));
  }

  private async read(query: string, ...args: (string | number)[]): Promise<Row[]> {
    const { client } = await this.connection.open(PATIENCE);
    return client.read(query, args);
  }
}

function ringOf({ name, items: length, looked, locked }: Row): InspectedRing {
  const ring = { list: name as string, items: length as number, locked: locked as number };
  return (looked as number) < ring.items ? { ...ring, looked: looked as number } : ring;
}

function itemOf({ item, token, until, host, pid, since, resting }: Row, skew: number): InspectedItem {
  if (token === null) return { item: item as Buffer };
  const holder = { token: token as Buffer, until: (until as number) - skew };
  if (host === null) return { item: item as Buffer, holder };
  const known = { host: host as string, pid: pid as number, since: (since as number) - skew };
  return { item: item as Buffer, holder: { ...holder, ...known, ...(resting === true ? { resting: true } : {}) } };
}
