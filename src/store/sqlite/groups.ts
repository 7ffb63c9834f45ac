import type { QueueLimits, Rate } from '../store.js';
import type { QueueCounters, Tables } from './tables.js';

/** Where a group is: see the schema. */
const SHELF = { none: 0, turns: 1, full: 2, rested: 3 } as const;
const COLUMNS = 'name, waiting, holds, shelf, turn, opened, started, rests';

/** Groups one claim looks at beyond what it takes. */
const LOOKED_AT = 1_000;

interface Group {
  name: string;
  waiting: number;
  holds: number;
  shelf: number;
  turn: number;
  opened: number;
  started: number;
  rests: number;
}

/**
 * The lines of a queue's groups. Groups that may go on take turns; one that may not leaves the round until it may. Changes
 * are gathered while a verb works and written once.
 */
export class Groups {
  readonly #pace: NonNullable<QueueLimits['group']>;
  readonly #known = new Map<string, Group>();
  readonly #changed = new Set<Group>();

  constructor(
    private readonly tables: Tables,
    private readonly counters: QueueCounters,
    private readonly now: number,
  ) {
    this.#pace = limitsOf(counters.row).group ?? {};
  }

  /** A job of the group has become ready. */
  enter(name: string): void {
    const group = this.#find(name) ?? this.#make(name);
    group.waiting += 1;
    this.counters.add('grouped', 1);
    this.#changed.add(group);
    if (group.shelf === SHELF.none) this.#seat(group);
  }

  /** A ready job of the group is gone. One whose line is empty now stays where it is, and is found out at its turn. */
  leave(name: string): void {
    const group = this.#find(name)!;
    group.waiting -= 1;
    this.counters.add('grouped', -1);
    this.#changed.add(group);
  }

  /** Leases of groups have ended, so many of each: those that were at their limit may go on. */
  releaseAll(counts: ReadonlyMap<string, number>): void {
    this.#select('name IN (SELECT value FROM json_each(?))', JSON.stringify([...counts.keys()]));
    for (const [name, count] of counts) this.release(name, count);
  }

  release(name: string, count: number): void {
    const group = this.#find(name);
    if (!group) return;
    group.holds = Math.max(0, group.holds - count);
    this.#changed.add(group);
    if (group.shelf === SHELF.full) this.#seat(group);
  }

  /**
   * Takes up to `want` jobs, one from each group in turn. It is counted first and taken then, all at once; `lease` takes that
   * many from the heads of these lines, group by group.
   */
  take<T>(want: number, lease: (counts: ReadonlyMap<string, number>) => T[]): T[] {
    const order: Group[] = [];
    const given = new Map<Group, number>();
    const again: Group[] = [];
    let head = 0;
    const next = this.#round(() => want - order.length, want + LOOKED_AT);
    while (order.length < want) {
      const group = next() ?? again[head++];
      if (!group) break;
      const count = given.get(group) ?? 0;
      const most = this.#mayGive(group);
      if (count >= most) {
        this.#seat(group);
        continue;
      }
      given.set(group, count + 1);
      order.push(group);
      if (count + 1 < most) again.push(group);
    }
    if (order.length === 0) return [];
    const all = lease(new Map([...given].map(([group, count]) => [group.name, count])));
    const taken = new Map<Group, T[]>();
    for (const [group, count] of given) {
      this.#give(group, count);
      taken.set(group, all.splice(0, count));
    }
    const waiting = new Set(again.slice(head));
    for (const group of given.keys()) if (!waiting.has(group)) this.#seat(group);
    // Those that may go on stand behind all others, in the order in which they had their turn.
    for (const group of waiting) this.#seat(group);
    return order.map((group) => taken.get(group)!.shift()!);
  }

  /** Groups in the order of their turns, fetched as many at a time as are wanted. */
  #round(wanted: () => number, most: number): () => Group | undefined {
    let fetched: Group[] = [];
    let at = 0;
    let total = 0;
    let over = false;
    return () => {
      if (at >= fetched.length && !over) {
        fetched = this.#turns(wanted(), total);
        at = 0;
        total += fetched.length;
        over = fetched.length === 0 || total > most;
      }
      return fetched[at++];
    };
  }

  /** Groups whose time has come take turns again. */
  reopen(): void {
    this.flush();
    const due = this.#select('shelf = 3 AND rests <= ? ORDER BY rests, name LIMIT 1000', this.now);
    for (const group of due) this.#seat(group);
  }

  /** When the next group may go on, if one rests. */
  nextOpening(): number | undefined {
    this.flush();
    const row = this.tables
      .sql('SELECT min(rests) AS rests FROM groups WHERE queue = ? AND shelf = 3')
      .get(this.counters.queue);
    return (row?.rests as number | null) ?? undefined;
  }

  /** Whether some group may go on. Those at the head of the round whose line was cancelled away leave it. */
  anyTurn(): boolean {
    if (this.#turns(1, 0).every((group) => group.waiting > 0)) return this.#turns(1, 0).length > 0;
    const head = this.#turns(LOOKED_AT, 0);
    for (const group of head) {
      if (group.waiting > 0) return true;
      this.#seat(group);
    }
    return head.length === LOOKED_AT;
  }

  /** The limits have changed: groups that the old ones held up are looked at again when their turn comes. */
  reconsider(): void {
    this.counters.add('turn', 1);
    this.tables
      .sql('UPDATE groups SET shelf = 1, turn = ? WHERE queue = ? AND shelf IN (2, 3)')
      .run(this.counters.get('turn'), this.counters.queue);
  }

  flush(): void {
    if (this.#changed.size === 0) return;
    const save = this.tables.sql(
      `INSERT INTO groups (queue, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
       waiting = excluded.waiting, holds = excluded.holds, shelf = excluded.shelf, turn = excluded.turn,
       opened = excluded.opened, started = excluded.started, rests = excluded.rests`,
    );
    for (const { name, waiting, holds, shelf, turn, opened, started, rests } of this.#changed)
      save.run(this.counters.queue, name, waiting, holds, shelf, turn, opened, started, rests);
    this.#changed.clear();
  }

  #give(group: Group, count: number): void {
    const [opened, started] = windowOf(group, this.#pace.rate, this.now);
    group.waiting -= count;
    group.holds += count;
    Object.assign(group, { opened, started: started + count });
    this.counters.add('grouped', -count);
    this.#changed.add(group);
  }

  /** How many jobs it may give now. */
  #mayGive(group: Group): number {
    const { concurrency, rate } = this.#pace;
    const slots = concurrency === undefined ? group.waiting : concurrency - group.holds;
    const starts = rate ? rate.count - windowOf(group, rate, this.now)[1] : group.waiting;
    return Math.max(0, Math.min(group.waiting, slots, starts));
  }

  /** Puts a group where it belongs now, last in the round if it may go on. */
  #seat(group: Group): void {
    const { concurrency, rate } = this.#pace;
    this.#changed.add(group);
    if (group.waiting === 0) group.shelf = SHELF.none;
    else if (concurrency !== undefined && group.holds >= concurrency) group.shelf = SHELF.full;
    else if (rate && windowOf(group, rate, this.now)[1] >= rate.count) {
      group.shelf = SHELF.rested;
      group.rests = group.opened + rate.per;
    } else {
      this.counters.add('turn', 1);
      group.shelf = SHELF.turns;
      group.turn = this.counters.get('turn');
    }
  }

  /** The next groups of the round. */
  #turns(limit: number, offset: number): Group[] {
    if (offset === 0) this.flush();
    return this.#select('shelf = 1 ORDER BY turn, name LIMIT ? OFFSET ?', limit, offset);
  }

  #find(name: string): Group | undefined {
    return this.#known.get(name) ?? this.#select('name = ?', name)[0];
  }

  #make(name: string): Group {
    const group = { name, waiting: 0, holds: 0, shelf: SHELF.none, turn: 0, opened: 0, started: 0, rests: 0 };
    this.#known.set(name, group);
    return group;
  }

  /** Rows as the groups they are: one object each, however often they are met. */
  #select(where: string, ...values: (string | number)[]): Group[] {
    const rows = this.tables
      .arrays(`SELECT ${COLUMNS} FROM groups WHERE queue = ? AND ${where}`)
      .all(this.counters.queue, ...values);
    return rows.map((row) => {
      const known = this.#known.get(row[0] as string);
      if (known) return known;
      const [name, waiting, holds, shelf, turn, opened, started, rests] = row as [string, ...number[]];
      const group = { name, waiting, holds, shelf, turn, opened, started, rests } as Group;
      this.#known.set(name, group);
      return group;
    });
  }
}

export function limitsOf({ pace }: { pace: string | null }): QueueLimits {
  return pace === null ? {} : (JSON.parse(pace) as QueueLimits);
}

/** When the window began and how many have started in it, a new one where the last is over. */
export function windowOf(
  { opened, started }: { opened: number; started: number },
  rate: Rate | undefined,
  now: number,
): [opened: number, started: number] {
  // One that began in the future is of a clock that was set back.
  const over = started === 0 || now < opened || now >= opened + (rate?.per ?? 0);
  return over ? [now, 0] : [opened, started];
}

/** Forgets groups that have nothing and whose rate no longer remembers anything. */
export function dropIdleGroups(tables: Tables, { queue, row }: QueueCounters, now: number): void {
  if (row.turn === 0) return;
  const per = limitsOf(row).group?.rate?.per ?? 0;
  tables
    .sql('DELETE FROM groups WHERE queue = ? AND waiting = 0 AND holds = 0 AND shelf = 0 AND opened <= ?')
    .run(queue, now - per);
}
