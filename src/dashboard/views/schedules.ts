import type { Engine } from '../../engine/engine.js';
import { nextTicks, scheduledPayload, scheduleView } from '../../engine/schedules/schedules.js';
import type { Schedule } from '../../store/store.js';
import type { ScheduleRow, SchedulesView } from '../api.js';
import { lineOf } from './job/content.js';

/** Firings that are shown, and schedules. */
const FIRINGS = 10;
const MOST = 1_000;
/** Schedules for which all of them are computed; for the others only the next. */
const MOST_FIRINGS = 50;

export async function schedulesView(engine: Engine, queue: string | undefined): Promise<SchedulesView> {
  return { now: engine.store.now(), schedules: await schedulesOf(engine, queue) };
}

export async function schedulesOf({ store }: Engine, queue: string | undefined): Promise<ScheduleRow[]> {
  const all = await store.schedules.list();
  return all
    .filter((schedule) => queue === undefined || schedule.queue === queue)
    .slice(0, MOST)
    .map((schedule, i) => rowOf(schedule, i < MOST_FIRINGS));
}

/** Computing ten firings of a cron expression takes a millisecond. */
function rowOf(schedule: Schedule, withAll: boolean): ScheduleRow {
  const { name, queue, cron, timezone, every, catchUp } = scheduleView(schedule);
  return {
    ...{
      name,
      queue,
      catchUp,
      next: nextTicks(schedule, withAll ? FIRINGS : 1),
      payload: lineOf(scheduledPayload(schedule)),
    },
    ...(cron === undefined ? {} : { cron }),
    ...(timezone === undefined ? {} : { timezone }),
    ...(every === undefined ? {} : { every }),
    ...(schedule.last === undefined ? {} : { last: schedule.last }),
  };
}
