import type { Spec, Terminal } from '../../job/job.js';
import { decodeSpec, keepOf } from '../../job/spec.js';
import type { Value } from './driver.js';
import { S, sizeOf, type Tables, Tally } from './table.js';

/** What the end of a job sets in motion: its record is kept or dropped, its key freed, its dependents told. */

export interface Ending {
  n: number;
  id: string;
  state: Terminal;
  spec: Spec;
  attempt: number;
  crashes: number;
  outcome: Value;
}

/** Keeps or drops the record. The caller has counted the state it came from. */
export function close(tables: Tables, tally: Tally, now: number, ending: Ending): void {
  const keep = keepOf(ending.spec, ending.state);
  if (keep.ms > 0 && keep.count > 0) {
    tables
      .sql(
        `UPDATE jobs SET state = ?, attempt = ?, crashes = ?, at = ?, until = ?, outcome = ?, worker = NULL, token = NULL
         WHERE n = ?`,
      )
      .run(S[ending.state], ending.attempt, ending.crashes, now, now + keep.ms, ending.outcome, ending.n);
    tally.add(ending.state, 1);
  } else {
    tables.sql('DELETE FROM jobs WHERE n = ?').run(ending.n);
    if (hasNotes(tables)) tables.sql('DELETE FROM notes WHERE n = ?').run(ending.n);
  }
  const { unique } = ending.spec;
  if (unique && unique.scope !== 'window') unlock(tables, tally.queue, unique.key, ending.id);
}

export function unlock(tables: Tables, queue: number, key: string, id: string): void {
  tables.sql('DELETE FROM keys WHERE queue = ? AND key = ? AND id = ?').run(queue, key, id);
}

/** Drops the oldest records of a state beyond `count`. */
export function prune(tables: Tables, tally: Tally, state: Terminal, count: number): void {
  const over = Math.min(tally.get(state) - count, 1_000);
  if (over <= 0) return;
  forget(
    tables,
    tally,
    state,
    'SELECT n FROM jobs WHERE queue = ? AND state = ? AND state > 3 ORDER BY until, n LIMIT ?',
    [tally.queue, S[state], over],
  );
}

/** Drops the records that `select` names; returns how many. */
export function forget(tables: Tables, tally: Tally, state: Terminal, select: string, values: Value[]): number {
  if (hasNotes(tables)) tables.sql(`DELETE FROM notes WHERE n IN (${select})`).run(...values);
  const gone = Number(tables.sql(`DELETE FROM jobs WHERE n IN (${select})`).run(...values).changes);
  tally.add(state, -gone);
  return gone;
}

export function hasNotes(tables: Tables): boolean {
  return tables.sql('SELECT 1 FROM notes LIMIT 1').get() !== undefined;
}

/** One count of queues per call, for dependents may live in any. */
class Tallies {
  readonly #all = new Map<number, Tally>();

  constructor(
    private readonly tables: Tables,
    own: Tally,
  ) {
    this.#all.set(own.queue, own);
  }

  of(queue: number): Tally {
    const known = this.#all.get(queue);
    if (known) return known;
    const tally = new Tally(this.tables, queue);
    this.#all.set(queue, tally);
    return tally;
  }

  writeOthers(own: Tally): void {
    for (const tally of this.#all.values()) if (tally !== own) tally.write();
  }
}

/** Tells the dependents of ended jobs, and theirs when that ends them too. Returns queues that have new work. */
export function tell(
  tables: Tables,
  own: Tally,
  now: number,
  ended: { n: number; id: string; state: Terminal }[],
): number[] {
  if (!tables.sql('SELECT 1 FROM edges LIMIT 1').get()) return [];
  const tallies = new Tallies(tables, own);
  const woken = new Set<number>();
  const work = [...ended];
  for (let i = 0; i < work.length; i++) {
    const next = work[i]!;
    const rows = tables
      .sql(
        `SELECT down, policy, queue, id, priority, at, spec, payload, grp FROM edges JOIN jobs ON n = down
         WHERE up = ? AND state = 0 ORDER BY id`,
      )
      .all(next.n);
    tables.sql('DELETE FROM edges WHERE up = ?').run(next.n);
    for (const row of rows) {
      const tally = tallies.of(row.queue as number);
      const n = row.down as number;
      if (next.state !== 'done' && row.policy === 'success') {
        tables.sql('DELETE FROM edges WHERE down = ?').run(n);
        tally.add('blocked', -1);
        tally.add('bytes', -sizeOf(row.payload as string));
        const outcome = `an upstream job ended ${next.state}: ${next.id}`;
        const ending = { n, id: row.id as string, state: 'cancelled' as const, attempt: 0, crashes: 0, outcome };
        close(tables, tally, now, { ...ending, spec: decodeSpec((row.spec as string | null) ?? '') });
        tally.event(now, 'cancelled', ending.id, outcome);
        work.push(ending);
      } else if (!tables.sql('SELECT 1 FROM edges WHERE down = ? LIMIT 1').get(n)) {
        unblock(tables, tally, now, n, row.at as number);
        const later = (row.at as number) > now;
        if (row.grp !== null && !later) tally.groups(now).enter(row.grp as string);
        woken.add(tally.queue);
      }
    }
  }
  tallies.writeOthers(own);
  return [...woken];
}

function unblock(tables: Tables, tally: Tally, now: number, n: number, at: number): void {
  const later = at > now;
  tally.move('blocked', later ? 'scheduled' : 'ready');
  tables
    .sql('UPDATE jobs SET state = ?, seq = ? WHERE n = ?')
    .run(later ? S.scheduled : S.ready, later ? 0 : tally.nextBack(), n);
}
