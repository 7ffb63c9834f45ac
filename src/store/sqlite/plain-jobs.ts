import type { NewJob, Spec } from '../../job/job.js';
import { encodeSpec, isRelated } from '../../job/spec.js';
import type { Value } from './file/driver.js';
import { type QueueCounters, sizeOf, type Tables } from './tables.js';

/** A new id is this long. */
const ID = 36;
/** A place is where a job begins in the packed text, times this, plus the length of its payload. */
const PLACE = 2 ** 26;
const LONGEST = PLACE - 1;
/** With fewer jobs, packing saves nothing. */
const FEW = 4;

const INSERT = 'INSERT INTO jobs (queue, id, state, priority, seq, created, reservation, spec, payload)';
const ONE = `${INSERT} VALUES (?1, ?6, 2, 0, ?3, ?2, ?4, ?5, ?7)`;
/** Ids and texts of all jobs are one value, cut apart by SQLite: with a value for each, `addMany` takes an eighth more CPU time. */
const PACKED = `${INSERT}
  SELECT ?1, CAST(substr(?6, 1 + value / ${PLACE}, ${ID}) AS TEXT), 2, 0, ?3 + key, ?2, ?4, ?5,
    CAST(substr(?6, ${1 + ID} + value / ${PLACE}, value % ${PLACE}) AS TEXT)
  FROM json_each(?7)`;

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
  const packed = jobs.length < FEW ? undefined : pack(jobs);
  if (packed) {
    const { text, places } = packed;
    tables.sql(PACKED).run(...shared(counters, jobs[0]!.spec, now), text, `[${places.join()}]`);
    counters.add('back', jobs.length);
    counters.add('bytes', text.length - ID * jobs.length);
  } else {
    for (const { id, payload, spec } of jobs) {
      tables.sql(ONE).run(...shared(counters, spec, now), id, payload);
      counters.add('back', 1);
      counters.add('bytes', sizeOf(payload));
    }
  }
  counters.add('ready', jobs.length);
}

/** The values that all jobs of a statement have in common, and the place of the first in its queue. */
function shared(counters: QueueCounters, spec: Spec, now: number): Value[] {
  return [counters.queue, now, counters.get('back') + 1, spec.reservation, encodeSpec(spec) || null];
}

/** Undefined if the jobs have not all the same options, ids of the usual form and texts as payload, or if they are too long. */
function pack(jobs: readonly NewJob[]): { text: Buffer; places: number[] } | undefined {
  const { spec } = jobs[0]!;
  let all = '';
  for (const job of jobs) {
    if (job.spec !== spec || typeof job.payload !== 'string' || job.id.length !== ID) return undefined;
    all += job.id + job.payload;
  }
  const text = Buffer.from(all);
  if (text.length > LONGEST) return undefined;
  const isAscii = text.length === all.length;
  const places: number[] = [];
  let at = 0;
  for (const { payload } of jobs) {
    const size = isAscii ? payload.length : sizeOf(payload);
    places.push(at * PLACE + size);
    at += ID + size;
  }
  return at === text.length ? { text, places } : undefined;
}
