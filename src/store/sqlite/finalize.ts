import type { Spec, Terminal } from '../../job/job.js';
import { decodeSpec, keepOf } from '../../job/spec.js';
import type { Value } from './file/driver.js';
import { QueueCounters, S, sizeOf, type Tables } from './tables.js';

/** The consequences of a job's end: its record is kept or removed, its unique key freed, its dependents notified. */

export interface JobEnd {
  n: number;
  id: string;
  state: Terminal;
  spec: Spec;
  attempt: number;
  crashes: number;
  outcome: Value;
}

/** Keeps or removes the record. The caller has already adjusted the count of the previous state. */
export function closeJob(tables: Tables, counters: QueueCounters, now: number, ending: JobEnd): void {
  const keep = keepOf(ending.spec, ending.state);
  if (keep.ms > 0 && keep.count > 0) {
    tables
      .sql(
        `UPDATE jobs SET state = ?, attempt = ?, crashes = ?, at = ?, until = ?, outcome = ?, worker = NULL, token = NULL
         WHERE n = ?`,
      )
      .run(S[ending.state], ending.attempt, ending.crashes, now, now + keep.ms, ending.outcome, ending.n);
    counters.add(ending.state, 1);
  } else {
    tables.sql('DELETE FROM jobs WHERE n = ?').run(ending.n);
    if (hasNotes(tables)) tables.sql('DELETE FROM notes WHERE n = ?').run(ending.n);
  }
  const { unique } = ending.spec;
  if (unique && unique.scope !== 'window') freeUniqueKey(tables, counters.queue, unique.key, ending.id);
}

export function freeUniqueKey(tables: Tables, queue: number, key: string, id: string): void {
  tables.sql('DELETE FROM keys WHERE queue = ? AND key = ? AND id = ?').run(queue, key, id);
}

/** Removes the oldest records of a state beyond `count`. */
export function dropOldest(tables: Tables, counters: QueueCounters, state: Terminal, count: number): void {
  const over = Math.min(counters.get(state) - count, 1_000);
  if (over <= 0) return;
  dropRecords(
    tables,
    counters,
    state,
    'SELECT n FROM jobs WHERE queue = ? AND state = ? AND state > 3 ORDER BY until, n LIMIT ?',
    [counters.queue, S[state], over],
  );
}

/** Removes the records that `select` returns; returns how many. */
export function dropRecords(
  tables: Tables,
  counters: QueueCounters,
  state: Terminal,
  select: string,
  values: Value[],
): number {
  if (hasNotes(tables)) tables.sql(`DELETE FROM notes WHERE n IN (${select})`).run(...values);
  const gone = Number(tables.sql(`DELETE FROM jobs WHERE n IN (${select})`).run(...values).changes);
  counters.add(state, -gone);
  return gone;
}

export function hasNotes(tables: Tables): boolean {
  return tables.sql('SELECT 1 FROM notes LIMIT 1').get() !== undefined;
}

/** The counters of each queue involved in a call, as dependents may be in any queue. */
class Tallies {
  readonly #all = new Map<number, QueueCounters>();

  constructor(
    private readonly tables: Tables,
    own: QueueCounters,
  ) {
    this.#all.set(own.queue, own);
  }

  of(queue: number): QueueCounters {
    const known = this.#all.get(queue);
    if (known) return known;
    const counters = new QueueCounters(this.tables, queue);
    this.#all.set(queue, counters);
    return counters;
  }

  writeOthers(own: QueueCounters): void {
    for (const counters of this.#all.values()) if (counters !== own) counters.write();
  }
}

/**
 * Notifies the dependents of ended jobs, and their own dependents if that ends them too. Returns queues with new work.
 */
export function tellDependents(
  tables: Tables,
  own: QueueCounters,
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
      const counters = tallies.of(row.queue as number);
      const n = row.down as number;
      if (next.state !== 'done' && row.policy === 'success') {
        tables.sql('DELETE FROM edges WHERE down = ?').run(n);
        counters.add('blocked', -1);
        counters.add('bytes', -sizeOf(row.payload as string));
        const outcome = `an upstream job ended ${next.state}: ${next.id}`;
        const ending = { n, id: row.id as string, state: 'cancelled' as const, attempt: 0, crashes: 0, outcome };
        closeJob(tables, counters, now, { ...ending, spec: decodeSpec((row.spec as string | null) ?? '') });
        counters.event(now, 'cancelled', ending.id, outcome);
        work.push(ending);
      } else if (!tables.sql('SELECT 1 FROM edges WHERE down = ? LIMIT 1').get(n)) {
        unblock(tables, counters, now, n, row.at as number);
        const later = (row.at as number) > now;
        if (row.grp !== null && !later) counters.groups(now).enter(row.grp as string);
        woken.add(counters.queue);
      }
    }
  }
  tallies.writeOthers(own);
  return [...woken];
}

function unblock(tables: Tables, counters: QueueCounters, now: number, n: number, at: number): void {
  const later = at > now;
  counters.move('blocked', later ? 'scheduled' : 'ready');
  tables
    .sql('UPDATE jobs SET state = ?, seq = ? WHERE n = ?')
    .run(later ? S.scheduled : S.ready, later ? 0 : counters.nextBack(), n);
}
