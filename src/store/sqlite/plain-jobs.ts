import type { NewJob } from '../../job/job.js';
import { encodeSpec, isRelated } from '../../job/spec.js';
import type { Value } from './file/driver.js';
import { type QueueCounters, sizeOf, type Tables } from './tables.js';

/** Rows per statement. */
const ROWS = 50;

const COLUMNS = 'queue, id, state, priority, seq, created, reservation, spec, payload';

/** Everything but the id and the payload is the same in all rows, or follows from their order. */
function statementFor(rows: number): string {
  const row = (i: number) => `(?1, ?${6 + 2 * i}, 2, 0, ?3 + ${i}, ?2, ?4, ?5, ?${7 + 2 * i})`;
  return `INSERT INTO jobs (${COLUMNS}) VALUES ${Array.from({ length: rows }, (_x, i) => row(i)).join(', ')}`;
}

const MANY = statementFor(ROWS);
const ONE = statementFor(1);

/** A job that is ready now and concerns no other job. */
export function isPlain({ priority, at, delay, replaceEnded, spec }: NewJob): boolean {
  if (priority !== 0 || at !== undefined || delay || replaceEnded) return false;
  return !spec.needs && !spec.unique && spec.group === undefined && !isRelated(spec);
}

const TAKEN = 'SELECT 1 FROM json_each(?) AS chosen CROSS JOIN jobs ON queue = ? AND jobs.id = chosen.value LIMIT 1';
const ENDED =
  'SELECT 1 FROM json_each(?) AS chosen CROSS JOIN ended_ids ON queue = ? AND ended_ids.id = chosen.value AND until > ? LIMIT 1';

/** Whether no id that a producer has chosen is taken; a query for each job would cost more than adding it. */
export function hasNewIds(tables: Tables, queue: number, jobs: readonly NewJob[], now: number): boolean {
  const ids: string[] = [];
  for (const { id, fresh } of jobs) if (!fresh) ids.push(id);
  if (ids.length === 0) return true;
  if (new Set(ids).size < ids.length) return false;
  const list = JSON.stringify(ids);
  return !tables.sql(TAKEN).get(list, queue) && !tables.sql(ENDED).get(list, queue, now);
}

/** Adds plain jobs to a queue whose events nobody records. */
export function addPlain(tables: Tables, counters: QueueCounters, jobs: readonly NewJob[], now: number): void {
  let bytes = 0;
  for (let i = 0; i < jobs.length; ) {
    const rows = jobs.length - i >= ROWS && sharesSpec(jobs, i) ? ROWS : 1;
    const { spec } = jobs[i]!;
    const text = encodeSpec(spec);
    const values: Value[] = [
      counters.queue,
      now,
      counters.get('back') + 1,
      spec.reservation,
      text === '' ? null : text,
    ];
    for (const end = i + rows; i < end; i++) {
      const { id, payload } = jobs[i]!;
      values.push(id, payload);
      bytes += sizeOf(payload);
    }
    tables.sql(rows === 1 ? ONE : MANY).run(...values);
    counters.add('back', rows);
  }
  counters.add('ready', jobs.length);
  counters.add('bytes', bytes);
}

function sharesSpec(jobs: readonly NewJob[], from: number): boolean {
  const { spec } = jobs[from]!;
  for (let i = from + 1; i < from + ROWS; i++) if (jobs[i]!.spec !== spec) return false;
  return true;
}
