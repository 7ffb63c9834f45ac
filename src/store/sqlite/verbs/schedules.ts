import type { NewJob } from '../../../job/job.js';
import type { NewSchedule, Schedule } from '../../store.js';
import type { Row } from '../file/driver.js';
import type { Tables } from '../tables.js';
import { add } from './add.js';

const SELECT = `SELECT schedules.name, queues.name AS queue, definition, since, next, last
  FROM schedules JOIN queues ON queues.n = schedules.queue`;

export function putSchedule(tables: Tables, queue: number, schedule: NewSchedule): Schedule {
  const known = find(tables, schedule.name);
  if (known?.queue !== schedule.queue || known.definition !== schedule.definition) {
    tables
      .sql('INSERT OR REPLACE INTO schedules (name, queue, definition, since, next) VALUES (?, ?, ?, ?, ?)')
      .run(schedule.name, queue, schedule.definition, schedule.since, schedule.next ?? null);
  }
  return find(tables, schedule.name)!;
}

/** Fires only while the tick is still the schedule's next one. */
export function fireSchedule(
  tables: Tables,
  queue: number,
  { name, definition, next: tick }: Schedule,
  { jobs, next, last }: { jobs: readonly NewJob[]; next?: number; last?: number },
  now: number,
): boolean {
  // A caller whose clock is ahead must wait until the tick is due.
  if (tick! > now + 1_000) return false;
  const { changes } = tables
    .sql('UPDATE schedules SET next = ?, last = ? WHERE name = ? AND queue = ? AND next = ? AND definition = ?')
    .run(next ?? null, last ?? null, name, queue, tick!, definition);
  if (Number(changes) === 0) return false;
  if (jobs.length > 0) add(tables, queue, jobs, {}, now);
  return true;
}

export function listSchedules(tables: Tables): Schedule[] {
  return tables.sql(`${SELECT} ORDER BY schedules.name`).all().map(toSchedule);
}

export function removeSchedule(tables: Tables, name: string): boolean {
  return Number(tables.sql('DELETE FROM schedules WHERE name = ?').run(name).changes) > 0;
}

function find(tables: Tables, name: string): Schedule | undefined {
  const row = tables.sql(`${SELECT} WHERE schedules.name = ?`).get(name);
  return row && toSchedule(row);
}

function toSchedule(row: Row): Schedule {
  return {
    name: row.name as string,
    queue: row.queue as string,
    definition: row.definition as string,
    since: row.since as number,
    ...(row.next === null ? {} : { next: row.next as number }),
    ...(row.last === null ? {} : { last: row.last as number }),
  };
}
