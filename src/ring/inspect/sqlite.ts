import { existsSync } from 'node:fs';
import { type Database, openDatabase, type Row } from '../../store/sqlite/file/driver.js';
import { type InspectedItem, type InspectedRing, LOOKED, lookedEach, type RingInspector } from './inspector.js';

/** Finds each list with one step in the index. */
const LISTS = `
WITH RECURSIVE lists(list) AS (
  SELECT min(list) FROM ring_list
  UNION ALL SELECT (SELECT min(list) FROM ring_list WHERE list > lists.list) FROM lists WHERE list IS NOT NULL
) SELECT list FROM lists WHERE list IS NOT NULL LIMIT ?`;
const LOCKED = `
SELECT count(*) AS looked, count(token) AS locked FROM (
  SELECT item FROM ring_list WHERE list = ? ORDER BY position DESC LIMIT ?
) LEFT JOIN ring_lock ON lock = CAST(? || CAST(item AS BLOB) AS BLOB) AND until > ?`;
/** With the order and the number of items; a holder counts only as long as the lock has its token. */
const items = (order: string, only: string) => `
SELECT CAST(item AS BLOB) AS item, l.token, l.until, host, pid, since, resting FROM (
  SELECT position, item FROM ring_list WHERE list = ? ORDER BY position ${order} LIMIT ? OFFSET ?
)
${only} JOIN ring_lock l ON l.lock = CAST(? || CAST(item AS BLOB) AS BLOB) AND l.until > ?
LEFT JOIN ring_holder h ON h.lock = l.lock AND h.token = l.token
ORDER BY position ${order}`;
const PAGE = items('ASC', 'LEFT');
const HELD = items('DESC', '');

/** For files of earlier versions, until a process of this version adds the tables: of this connection only. */
const STAND_INS = `
CREATE TEMP TABLE ring_holder (lock, token, host, pid, since, resting);
CREATE TEMP TABLE ring_names (list, lock_start);`;

/** The rings of a SQLite file; a file that has none is left as it is. */
export class SqliteInspector implements RingInspector {
  private db: Database | undefined;
  private hasRings = false;
  /** The file is of an earlier version, which said nothing about holders. */
  private earlier = false;

  constructor(private readonly file: string) {}

  async rings(most: number): Promise<{ rings: InspectedRing[]; more: boolean }> {
    const db = this.open();
    const lists = db ? db.prepare(LISTS).all(most + 1) : [];
    const each = lookedEach(Math.min(lists.length, most));
    const rings = lists.slice(0, most).map(({ list }) => look(db!, list as string, each));
    return { rings, more: lists.length > most };
  }

  async ring(list: string): Promise<InspectedRing | undefined> {
    const db = this.open();
    const known = db?.prepare('SELECT 1 FROM ring_list WHERE list = ? LIMIT 1').get(list);
    return known && look(db!, list, LOOKED);
  }

  async items(list: string, from: number, count: number): Promise<InspectedItem[]> {
    const db = this.open();
    if (!db) return [];
    return db
      .prepare(PAGE)
      .all(list, count, from, Buffer.from(lockStart(db, list)), Date.now())
      .map(itemOf);
  }

  async held(list: string, most: number): Promise<InspectedItem[]> {
    const db = this.open();
    if (!db) return [];
    const rows = db.prepare(HELD).all(list, LOOKED, 0, Buffer.from(lockStart(db, list)), Date.now());
    return rows.slice(0, most).map(itemOf);
  }

  close(): void {
    this.db?.close();
    this.db = undefined;
    this.hasRings = false;
    this.earlier = false;
  }

  /** Undefined as long as the file has no ring. */
  private open(): Database | undefined {
    if (this.earlier) this.close();
    if (this.hasRings || !existsSync(this.file)) return this.db;
    // The connection is kept even if there is no ring yet: a driver gives the file back late.
    this.db ??= openDatabase(this.file);
    if (!hasTable(this.db, 'ring_list')) return undefined;
    this.hasRings = true;
    this.earlier = !hasTable(this.db, 'ring_holder');
    if (this.earlier) this.db.exec(STAND_INS);
    return this.db;
  }
}

/** A file that is just being created, and therefore locked, has no tables yet. */
function hasTable(db: Database, name: string): boolean {
  try {
    return db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== undefined;
  } catch (error) {
    if (/database is locked|busy/i.test((error as Error).message)) return false;
    throw error;
  }
}

/** How the locks of a list are called: as its last user called them, or as usual. */
function lockStart(db: Database, list: string): string {
  const row = db.prepare('SELECT lock_start FROM ring_names WHERE list = ?').get(list);
  return (row?.lock_start as string | undefined) ?? `${list.replace(/list$/, '')}lock:`;
}

function look(db: Database, list: string, most: number): InspectedRing {
  const { n } = db.prepare('SELECT count(*) AS n FROM ring_list WHERE list = ?').get(list)!;
  const seen = db.prepare(LOCKED).get(list, most, Buffer.from(lockStart(db, list)), Date.now())!;
  const [length, looked] = [Number(n), Number(seen.looked)];
  return { list, items: length, locked: Number(seen.locked), ...(looked < length ? { looked } : {}) };
}

function itemOf({ item, token, until, host, pid, since, resting }: Row): InspectedItem {
  const bytes = Buffer.from(item as Uint8Array);
  if (token === null) return { item: bytes };
  const holder = { token: Buffer.from(token as Uint8Array), until: Number(until) };
  if (host === null) return { item: bytes, holder };
  const known = { host: host as string, pid: Number(pid), since: Number(since) };
  return { item: bytes, holder: { ...holder, ...known, ...(resting === 1 ? { resting: true } : {}) } };
}
