import type { GroupLimits, QueueLimits, Rate } from '../store.js';
import type { QueueCounters, Tables } from './tables.js';

/** Values of the `shelf` column: see the schema. */
const SHELF = { none: 0, turns: 1, full: 2, rested: 3 } as const;
const COLUMNS = 'name, waiting, holds, shelf, turn, opened, started, rests, held';

/** How many groups one claim examines beyond those it takes from. */
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
  /** In an ordered group: the row of the job that has started, has not ended, and waits to go on. No other job may start. */
  held: number | null;
}

/** What a group gives to a claim: this many of its first jobs, or the one it holds. */
export interface Share {
  count: number;
  held: number | null;
}

/**
 * The groups of a queue and their waiting jobs. Groups that may start jobs take turns; a group that may not leaves the
 * rotation until it may. Changes are collected during a call and written once.
 */
export class Groups {
  readonly #pace: GroupLimits;
  readonly #known = new Map<string, Group>();
  readonly #changed = new Set<Group>();

  constructor(
    private readonly tables: Tables,
    private readonly counters: QueueCounters,
    private readonly now: number,
  ) {
    this.#pace = limitsOf(counters.row).group ?? {};
  }

  /** A job of the group has become ready; `n` is its row, needed if the group may hold it. */
  enter(name: string, n?: number): void {
    const group = this.#find(name) ?? this.#make(name);
    group.waiting += 1;
    this.counters.add('grouped', 1);
    this.#changed.add(group);
    const goesOn = group.shelf === SHELF.full && group.held !== null && group.held === n;
    if (group.shelf === SHELF.none || goesOn) this.#place(group);
  }

  /** A job that has started waits again: in an ordered group, no other job may start before it has ended. */
  hold(name: string, n: number): void {
    if (!this.#pace.ordered) return;
    const group = this.#find(name) ?? this.#make(name);
    group.held ??= n;
    this.#changed.add(group);
  }

  /** Whether the group waits for this job, which waits itself. */
  isHeld(name: string, n: number): boolean {
    return this.#pace.ordered === true && this.#find(name)?.held === n;
  }

  /** A waiting job has ended or left: if the group held it, others may start. Returns whether it did. */
  letGo(name: string, n: number): boolean {
    if (!this.isHeld(name, n)) return false;
    const group = this.#find(name)!;
    group.held = null;
    this.#changed.add(group);
    if (group.shelf === SHELF.full) this.#place(group);
    return true;
  }

  /** A ready job of the group is gone. A group with nothing waiting stays in the rotation until its turn comes. */
  leave(name: string): void {
    const group = this.#find(name)!;
    group.waiting -= 1;
    this.counters.add('grouped', -1);
    this.#changed.add(group);
  }

  /** Applies the end of leases, with their number per group: groups that were at their limit may start more jobs. */
  releaseAll(counts: ReadonlyMap<string, number>): void {
    this.#select('name IN (SELECT value FROM json_each(?))', JSON.stringify([...counts.keys()]));
    for (const [name, count] of counts) this.release(name, count);
  }

  release(name: string, count: number): void {
    const group = this.#find(name);
    if (!group) return;
    group.holds = Math.max(0, group.holds - count);
    this.#changed.add(group);
    if (group.shelf === SHELF.full) this.#place(group);
  }

  /**
   * Takes up to `want` jobs, one from each group in turn. The shares are counted first and the jobs taken afterwards,
   * all at once; `lease` takes that many from the heads of the groups' waiting lists, group by group.
   */
  take<T>(want: number, lease: (shares: ReadonlyMap<string, Share>) => T[]): T[] {
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
        this.#place(group);
        continue;
      }
      given.set(group, count + 1);
      order.push(group);
      if (count + 1 < most) again.push(group);
    }
    if (order.length === 0) return [];
    const all = lease(new Map([...given].map(([group, count]) => [group.name, { count, held: group.held }])));
    const taken = new Map<Group, T[]>();
    for (const [group, count] of given) {
      this.#give(group, count);
      taken.set(group, all.splice(0, count));
    }
    const waiting = new Set(again.slice(head));
    for (const group of given.keys()) if (!waiting.has(group)) this.#place(group);
    // Groups that may start more jobs go behind all others, in the order of their turns.
    for (const group of waiting) this.#place(group);
    return order.map((group) => taken.get(group)!.shift()!);
  }

  /** Iterates over groups in the order of their turns, fetching as many at a time as are wanted. */
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

  /** Returns groups whose rate window has opened to the rotation. */
  reopen(): void {
    this.flush();
    const due = this.#select('shelf = 3 AND rests <= ? ORDER BY rests, name LIMIT 1000', this.now);
    for (const group of due) this.#place(group);
  }

  /** When the next group that waits for its rate may start jobs, if there is one. */
  nextOpening(): number | undefined {
    this.flush();
    const row = this.tables
      .sql('SELECT min(rests) AS rests FROM groups WHERE queue = ? AND shelf = 3')
      .get(this.counters.queue);
    return (row?.rests as number | null) ?? undefined;
  }

  /** Whether any group may start a job. Groups at the head of the rotation whose jobs were all cancelled leave it. */
  anyTurn(): boolean {
    if (this.#turns(1, 0).every((group) => group.waiting > 0)) return this.#turns(1, 0).length > 0;
    const head = this.#turns(LOOKED_AT, 0);
    for (const group of head) {
      if (group.waiting > 0) return true;
      this.#place(group);
    }
    return head.length === LOOKED_AT;
  }

  /** The limits have changed: groups blocked by the old limits are checked again at their next turn. */
  reconsider(): void {
    this.counters.add('turn', 1);
    this.tables
      .sql('UPDATE groups SET shelf = 1, turn = ? WHERE queue = ? AND shelf IN (2, 3)')
      .run(this.counters.get('turn'), this.counters.queue);
    if (this.#pace.ordered) return;
    this.tables.sql('UPDATE groups SET held = NULL WHERE queue = ? AND held IS NOT NULL').run(this.counters.queue);
  }

  flush(): void {
    if (this.#changed.size === 0) return;
    const save = this.tables.sql(
      `INSERT INTO groups (queue, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
       waiting = excluded.waiting, holds = excluded.holds, shelf = excluded.shelf, turn = excluded.turn,
       opened = excluded.opened, started = excluded.started, rests = excluded.rests, held = excluded.held`,
    );
    for (const { name, waiting, holds, shelf, turn, opened, started, rests, held } of this.#changed)
      save.run(this.counters.queue, name, waiting, holds, shelf, turn, opened, started, rests, held);
    this.#changed.clear();
  }

  #give(group: Group, count: number): void {
    const [opened, started] = windowOf(group, this.#pace.rate, this.now);
    group.waiting -= count;
    group.holds += count;
    Object.assign(group, { opened, started: started + count, held: null });
    this.counters.add('grouped', -count);
    this.#changed.add(group);
  }

  /** How many jobs the group may start now. */
  #mayGive(group: Group): number {
    const { rate } = this.#pace;
    const slots = this.#slots(group);
    const starts = rate ? rate.count - windowOf(group, rate, this.now)[1] : group.waiting;
    return Math.max(0, Math.min(group.waiting, slots, starts));
  }

  /** How many jobs the group may start, as far as its concurrency and its order are concerned. */
  #slots(group: Group): number {
    const { concurrency, ordered } = this.#pace;
    if (ordered) return group.holds > 0 || this.#waitsForHeld(group) ? 0 : 1;
    return concurrency === undefined ? group.waiting : concurrency - group.holds;
  }

  #waitsForHeld(group: Group): boolean {
    if (group.held === null) return false;
    return this.tables.sql('SELECT 1 FROM jobs WHERE n = ? AND state = 2').get(group.held) === undefined;
  }

  /** Puts a group where it belongs now, last in the rotation if it may start jobs. */
  #place(group: Group): void {
    const { rate } = this.#pace;
    this.#changed.add(group);
    if (group.waiting === 0) group.shelf = SHELF.none;
    else if (this.#slots(group) <= 0) group.shelf = SHELF.full;
    else if (rate && windowOf(group, rate, this.now)[1] >= rate.count) {
      group.shelf = SHELF.rested;
      group.rests = group.opened + rate.per;
    } else {
      this.counters.add('turn', 1);
      group.shelf = SHELF.turns;
      group.turn = this.counters.get('turn');
    }
  }

  /** The next groups in the rotation. */
  #turns(limit: number, offset: number): Group[] {
    if (offset === 0) this.flush();
    return this.#select('shelf = 1 ORDER BY turn, name LIMIT ? OFFSET ?', limit, offset);
  }

  #find(name: string): Group | undefined {
    return this.#known.get(name) ?? this.#select('name = ?', name)[0];
  }

  #make(name: string): Group {
    const group = {
      name,
      waiting: 0,
      holds: 0,
      shelf: SHELF.none,
      turn: 0,
      opened: 0,
      started: 0,
      rests: 0,
      held: null,
    };
    this.#known.set(name, group);
    return group;
  }

  /** Maps rows to groups, with a single object per group. */
  #select(where: string, ...values: (string | number)[]): Group[] {
    const rows = this.tables
      .arrays(`SELECT ${COLUMNS} FROM groups WHERE queue = ? AND ${where}`)
      .all(this.counters.queue, ...values);
    return rows.map((row) => {
      const known = this.#known.get(row[0] as string);
      if (known) return known;
      const [name, waiting, holds, shelf, turn, opened, started, rests, held] = row as [string, ...number[]];
      const group = { name, waiting, holds, shelf, turn, opened, started, rests, held } as Group;
      this.#known.set(name, group);
      return group;
    });
  }
}

export function limitsOf({ pace }: { pace: string | null }): QueueLimits {
  return pace === null ? {} : (JSON.parse(pace) as QueueLimits);
}

/** When the rate window began and how many have started in it; a new window if the last one is over. */
export function windowOf(
  { opened, started }: { opened: number; started: number },
  rate: Rate | undefined,
  now: number,
): [opened: number, started: number] {
  // A window that began in the future results from a clock that was set back.
  const over = started === 0 || now < opened || now >= opened + (rate?.per ?? 0);
  return over ? [now, 0] : [opened, started];
}

/** Removes groups with no jobs and no remaining rate window. */
export function dropIdleGroups(tables: Tables, { queue, row }: QueueCounters, now: number): void {
  if (row.turn === 0) return;
  const per = limitsOf(row).group?.rate?.per ?? 0;
  tables
    .sql(
      'DELETE FROM groups WHERE queue = ? AND waiting = 0 AND holds = 0 AND shelf = 0 AND held IS NULL AND opened <= ?',
    )
    .run(queue, now - per);
}
