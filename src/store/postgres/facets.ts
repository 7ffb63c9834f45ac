import { STATES } from '../../job/job.js';
import { HISTORY_RANGES, intervalAt, RANGE_NAMES, readActivity, writeActivity } from '../history.js';
import type { BatchStore, EventStore, EventType, HistoryStore, Schedule, ScheduleStore } from '../store.js';
import { json, numbers, texts } from './connection/arguments.js';
import type { Row } from './connection/client.js';
import { addArguments } from './job-adder.js';
import type { View } from './view.js';

export function scheduleStore(view: View): ScheduleStore {
  const { client } = view;
  return {
    put: async ({ name, queue, definition, since, next }) => {
      const [row] = await client.rows('put_schedule', [name, queue, definition, since, next ?? null]);
      return toSchedule(row!);
    },
    fire: async ({ name, queue, definition, next: tick }, { jobs, next, last }) => {
      const schedule = [name, queue, definition, tick ?? null, next ?? null, last ?? null];
      const [, ...added] = addArguments(queue, jobs);
      // Harmless to repeat: a tick fires once.
      const { rows } = await view.related('fire_schedule', [...schedule, ...added]);
      const fired = rows[0]!.fire_schedule === true;
      if (fired) view.signals.emit(queue, { type: 'work' });
      return fired;
    },
    list: async () => {
      const text = `select s.name, q.name as queue, s.definition, s.since, s.next, s.last from crore.schedules s
        join crore.queues q on q.n = s.queue order by s.name`;
      return (await client.read(text, [])).map(toSchedule);
    },
    remove: async (name) => (await client.value('remove_schedule', [name])) === true,
  };
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

export function eventStore(view: View): EventStore {
  return {
    record: async (queue, ms) => String(await view.client.value('record_events', [view.time(), queue, ms])),
    read: async (queue, after, limit) => {
      const from = /^\d{1,18}$/.test(after) ? after : '0';
      const which = 'queue = (select q.n from crore.queues q where q.name = $1)';
      // The event at the position itself comes first, if it is still there.
      const text = `(select n, type, id, at, info from crore.events where ${which} and n = $2::bigint)
        union all (select n, type, id, at, info from crore.events where ${which} and n > $2::bigint order by n limit $3::int) order by n`;
      const rows = await view.client.read(text, [queue, from, limit]);
      const known = rows[0] !== undefined && String(rows[0].n) === from;
      return { gap: !known, events: (known ? rows.slice(1) : rows).map(toEvent) };
    },
  };
}

function toEvent(row: Row) {
  return {
    position: String(row.n),
    type: row.type as EventType,
    id: row.id as string,
    at: row.at as number,
    info: row.info as string,
  };
}

export function historyStore(view: View): HistoryStore {
  const ranges = texts(RANGE_NAMES);
  const steps = numbers(RANGE_NAMES.map((name) => HISTORY_RANGES[name].step));
  return {
    record: async (queue, activity) => {
      const written = json(JSON.parse(writeActivity(activity)));
      // Not repeated if the answer is lost: counting twice is worse than not at all.
      await view.client.value('record_history', [view.time(), queue, written, ranges, steps], false);
    },
    read: async (queue, range) => {
      const { step, steps: most } = HISTORY_RANGES[range];
      const text = `select interval, activity from crore.history where queue = (select n from crore.queues where name = $1) and range = $2
        and interval > $3::bigint order by interval`;
      const rows = await view.client.read(text, [queue, range, intervalAt(range, view.now()) - most]);
      return rows.map((row) => ({ at: (row.interval as number) * step, ...readActivity(row.activity as string) }));
    },
  };
}

export function batchStore(view: View): BatchStore {
  return {
    close: async (queue, id) => {
      const state = (await view.client.value('close_batch', [view.time(), queue, id])) as number | null;
      view.signals.emit(queue, { type: 'work' });
      return state === null ? undefined : STATES[state];
    },
    openMembers: async (queue, id, { limit, cursor }) => {
      const text = `select e.up as n, q.name as queue, m.id from crore.records o join crore.edges e on e.down = o.n and e.member
        join crore.jobs j on j.n = e.up join crore.records m on m.queue = j.queue and m.n = j.n join crore.queues q on q.n = m.queue
        where o.queue = (select n from crore.queues where name = $1) and o.id = $2 and e.up > $3::bigint order by e.up limit $4::int`;
      const rows = await view.client.read(text, [queue, id, Number(cursor) || 0, limit]);
      const members = rows.map((row) => ({ queue: row.queue as string, id: row.id as string }));
      return { members, ...(rows.length < limit ? {} : { cursor: String(rows.at(-1)!.n) }) };
    },
  };
}
