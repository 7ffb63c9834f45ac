import type { Pace, Rate } from '../store.js';
import type { Row } from './driver.js';
import { type Tables, Tally } from './table.js';

/** Where a group is: see the schema. */
const SHELF = { none: 0, turns: 1, full: 2, rested: 3 } as const;
const COLUMNS = 'name, waiting, holds, shelf, opened, started';

interface Group {
  name: string;
  waiting: number;
  holds: number;
  shelf: number;
  opened: number;
  started: number;
}

/** The lines of a queue's groups. Groups that may go on take turns; one that may not leaves the round until it may. */
export class Groups {
  readonly #pace: NonNullable<Pace['group']>;

  constructor(
    private readonly tables: Tables,
    private readonly tally: Tally,
    private readonly now: number,
  ) {
    this.#pace = paceOf(tally).group ?? {};
  }

  /** A job of the group has become ready. */
  enter(name: string): void {
    const group = this.#find(name) ?? this.#make(name);
    group.waiting += 1;
    this.tally.add('grouped', 1);
    if (group.shelf === SHELF.none) this.#seat(group);
    else this.#save(group);
  }

  /** A ready job of the group is gone. */
  leave(name: string): void {
    const group = this.#find(name)!;
    // One whose line is empty now stays where it is; it is found out when its turn comes.
    group.waiting -= 1;
    this.tally.add('grouped', -1);
    this.#save(group);
  }

  /** Leases of the group have ended; true when it may go on because of that. */
  release(name: string, count: number): boolean {
    const group = this.#find(name);
    if (!group) return false;
    group.holds = Math.max(0, group.holds - count);
    if (group.shelf === SHELF.full) this.#seat(group);
    else this.#save(group);
    return group.shelf === SHELF.turns;
  }

  /** Takes up to `want` jobs, one from each group in turn. */
  take<T>(want: number, lease: (group: string) => T): T[] {
    const taken: T[] = [];
    for (let i = 0; taken.length < want && i < want + 1_000; i++) {
      const group = this.#first();
      if (!group) break;
      if (this.#shelfOf(group) === SHELF.turns) taken.push(this.#takeOne(group, lease));
      this.#seat(group);
    }
    return taken;
  }

  /** Groups whose time has come take turns again; the time of the next, if any. */
  reopen(): void {
    const due = this.tables
      .sql(`SELECT ${COLUMNS} FROM groups WHERE queue = ? AND shelf = 3 AND rests <= ? ORDER BY rests, name LIMIT 1000`)
      .all(this.tally.queue, this.now);
    for (const row of due) this.#seat(row as unknown as Group);
  }

  nextOpening(): number | undefined {
    const row = this.tables
      .sql('SELECT min(rests) AS rests FROM groups WHERE queue = ? AND shelf = 3')
      .get(this.tally.queue);
    return (row?.rests as number | null) ?? undefined;
  }

  /** Whether some group may go on. Those at the head of the round whose line was cancelled away leave it. */
  anyTurn(): boolean {
    for (;;) {
      const group = this.#first();
      if (!group || group.waiting > 0) return group !== undefined;
      this.#seat(group);
    }
  }

  #first(): Group | undefined {
    const row = this.tables
      .sql(`SELECT ${COLUMNS} FROM groups WHERE queue = ? AND shelf = 1 ORDER BY turn, name LIMIT 1`)
      .get(this.tally.queue);
    return row as unknown as Group | undefined;
  }

  /** The limits have changed: groups at the old one are looked at again when their turn comes. */
  reconsider(): void {
    this.tally.add('turn', 1);
    this.tables
      .sql('UPDATE groups SET shelf = 1, turn = ? WHERE queue = ? AND shelf = 2')
      .run(this.tally.get('turn'), this.tally.queue);
  }

  #takeOne<T>(group: Group, lease: (group: string) => T): T {
    const taken = lease(group.name);
    const [opened, started] = windowOf(group, this.#pace.rate, this.now);
    Object.assign(group, { waiting: group.waiting - 1, holds: group.holds + 1, opened, started: started + 1 });
    this.tally.add('grouped', -1);
    return taken;
  }

  #shelfOf(group: Group): number {
    const { concurrency, rate } = this.#pace;
    if (group.waiting === 0) return SHELF.none;
    if (concurrency !== undefined && group.holds >= concurrency) return SHELF.full;
    if (rate && windowOf(group, rate, this.now)[1] >= rate.count) return SHELF.rested;
    return SHELF.turns;
  }

  /** Puts a group where it belongs now, last in the round if it may go on. */
  #seat(group: Group): void {
    group.shelf = this.#shelfOf(group);
    if (group.shelf === SHELF.turns) this.tally.add('turn', 1);
    const rests = group.shelf === SHELF.rested ? group.opened + this.#pace.rate!.per : 0;
    this.#save(group, this.tally.get('turn'), rests);
  }

  #find(name: string): Group | undefined {
    const row: Row | undefined = this.tables
      .sql(`SELECT ${COLUMNS} FROM groups WHERE queue = ? AND name = ?`)
      .get(this.tally.queue, name);
    return row as unknown as Group | undefined;
  }

  #make(name: string): Group {
    this.tables.sql('INSERT INTO groups (queue, name) VALUES (?, ?)').run(this.tally.queue, name);
    return { name, waiting: 0, holds: 0, shelf: SHELF.none, opened: 0, started: 0 };
  }

  #save({ name, waiting, holds, shelf, opened, started }: Group, turn?: number, rests?: number): void {
    this.tables
      .sql(
        `UPDATE groups SET waiting = ?, holds = ?, shelf = ?, opened = ?, started = ?, turn = coalesce(?, turn),
         rests = coalesce(?, rests) WHERE queue = ? AND name = ?`,
      )
      .run(waiting, holds, shelf, opened, started, turn ?? null, rests ?? null, this.tally.queue, name);
  }
}

export function paceOf(tally: Tally): Pace {
  return tally.row.pace === null ? {} : (JSON.parse(tally.row.pace) as Pace);
}

/** When the window began and how many have started in it, a new one where the last is over. */
export function windowOf(
  { opened, started }: { opened: number; started: number },
  rate: Rate | undefined,
  now: number,
): [opened: number, started: number] {
  return !rate || started === 0 || now >= opened + rate.per ? [now, 0] : [opened, started];
}

/** Forgets groups that have nothing and whose rate no longer remembers anything. */
export function forgetIdle(tables: Tables, tally: Tally, now: number): void {
  const per = paceOf(tally).group?.rate?.per ?? 0;
  tables
    .sql('DELETE FROM groups WHERE queue = ? AND waiting = 0 AND holds = 0 AND shelf = 0 AND opened <= ?')
    .run(tally.queue, now - per);
}

export function setPace(tables: Tables, queue: number, pace: Pace, now: number): void {
  const text = Object.keys(pace).length === 0 ? null : JSON.stringify(pace);
  tables.sql('UPDATE queues SET pace = ? WHERE n = ?').run(text, queue);
  const tally = new Tally(tables, queue);
  new Groups(tables, tally, now).reconsider();
  tally.write();
}
