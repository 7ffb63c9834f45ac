import type { ServiceImpl } from '@connectrpc/connect';
import { isPosition } from '../../engine/events.js';
import { checkInteger, checkName } from '../../engine/input/check.js';
import { resolveLimits } from '../../engine/input/limits.js';
import { resolveBreaker } from '../../engine/queue/breaker.js';
import {
  type CatchUp,
  checkSchedule,
  checkScheduleName,
  defineSchedule,
  extraJob,
  type ScheduledJobOptions,
  scheduleView,
} from '../../engine/schedules/schedules.js';
import { CroreError } from '../../errors.js';
import type { Crore, ScheduleRequest, CatchUp as WireCatchUp } from '../../proto/crore/v1/crore_pb.js';
import { toRecord } from '../../store/grpc/codec.js';
import {
  fromBreaker,
  fromLimits,
  fromSchedule,
  toBreaker,
  toLimits,
  toSchedule,
} from '../../store/grpc/schedule-codec.js';
import { fromMs, fromTime, toMs, toTime } from '../../store/grpc/times.js';
import { MAX_BATCH, type Schedule } from '../../store/store.js';
import type { ServerContext } from '../context.js';
import { bodyOf, durationOf, optionsOf, queueName } from './requests.js';
import { ADD_OUTCOMES } from './settlements.js';

type Calls =
  | 'getLimits'
  | 'setLimits'
  | 'getBreaker'
  | 'setBreaker'
  | 'schedule'
  | 'listSchedules'
  | 'unschedule'
  | 'runSchedule'
  | 'putSchedule'
  | 'fireSchedule'
  | 'recordEvents'
  | 'readEvents';

const CATCH_UPS: readonly (CatchUp | undefined)[] = [undefined, 'skip', 'last', 'all'];
const LONGEST_RECORD = 86_400_000;
const LONGEST_DEFINITION = 8 * 1024 * 1024;

/** The calls for limits, the breaker, schedules and events. */
export function scheduleService(context: ServerContext): Pick<ServiceImpl<typeof Crore>, Calls> {
  const { engine } = context;
  const { store } = engine;
  return {
    getLimits: async ({ queue }) => ({ limits: fromLimits((await store.settings(queueName(queue))).limits) }),
    setLimits: async ({ queue, limits }) => {
      await store.configure(queueName(queue), { limits: resolveLimits(toLimits(limits)) });
      return {};
    },

    getBreaker: async ({ queue }) => fromBreaker(await store.settings(queueName(queue))),
    setBreaker: async ({ queue, breaker }) => {
      const set = resolveBreaker(breaker ? toBreaker(breaker) : null);
      await store.configure(queueName(queue), { breaker: set });
      return {};
    },

    schedule: async (request) => {
      const schedule = await store.schedules.put(scheduleOf(context, request));
      engine.scheduleRunner.nudge();
      return { schedule: infoOf(schedule) };
    },
    listSchedules: async () => ({ schedules: (await store.schedules.list()).map(infoOf) }),
    unschedule: async ({ name }) => ({ removed: await store.schedules.remove(checkScheduleName(name)) }),
    runSchedule: async ({ name }) => {
      checkScheduleName(name);
      const schedule = (await store.schedules.list()).find((one) => one.name === name);
      if (!schedule) throw new CroreError('NOT_FOUND', `there is no schedule '${name}'`);
      const job = extraJob(schedule, store.now());
      const outcome = await engine.add(schedule.queue, job, {});
      const id = 'id' in outcome ? outcome.id : job.id;
      return { queue: schedule.queue, result: { outcome: ADD_OUTCOMES[outcome.outcome], id } };
    },
    putSchedule: async ({ schedule }) => {
      const known = checkedSchedule(toSchedule(schedule), store.now());
      const stored = await store.schedules.put(known);
      engine.scheduleRunner.nudge();
      return { schedule: fromSchedule(stored) };
    },
    fireSchedule: async ({ schedule, jobs, next, last }) => {
      const known = toSchedule(schedule);
      checkScheduleName(known.name);
      checkName(known.queue, 'queue name');
      if (jobs.length > MAX_BATCH)
        throw new CroreError('BAD_OPTION', `${jobs.length} jobs in one call, the limit is ${MAX_BATCH}`);
      const all = jobs.map((job) => toRecord(job, known.queue));
      const applied = await store.schedules.fire(known, { jobs: all, next: toTime(next), last: toTime(last) });
      return { applied };
    },

    recordEvents: async ({ queue, time }) => ({
      position: await store.events.record(queueName(queue), durationOf(toMs(time), 'time', 1, LONGEST_RECORD)),
    }),
    readEvents: async ({ queue, after, limit }) => {
      if (after !== '' && !isPosition(after)) throw new CroreError('BAD_OPTION', 'after is not an event position');
      const page = await store.events.read(
        queueName(queue),
        after,
        limit === 0 ? 100 : checkInteger(limit, 'limit', 1, 10_000),
      );
      return { events: page.events.map((event) => ({ ...event, at: fromTime(event.at) })), gap: page.gap };
    },
  };
}

function scheduleOf({ engine, limits }: ServerContext, request: ScheduleRequest): Schedule {
  const { name, queue, when, timezone, catchUp, job } = request;
  checkScheduleName(name);
  queueName(queue);
  if (when.case === undefined) throw new CroreError('BAD_OPTION', `schedule '${name}' has neither cron nor every`);
  const rule = when.case === 'cron' ? when.value : toMs(when.value)!;
  const payload = bodyOf(job?.payload, `payload of schedule '${name}'`, limits.message) ?? 'null';
  const options: ScheduledJobOptions = job ? optionsOf(queue, job) : {};
  if (options.priority === 0) delete options.priority;
  const since = engine.store.now();
  const extra = { timezone: timezone === '' ? undefined : timezone, catchUp: CATCH_UPS[catchUp] };
  const { text, first } = defineSchedule(name, queue, rule, payload, options, extra, since);
  return { name, queue, definition: text, since, next: first };
}

/** Validates a schedule built by a client's engine. */
function checkedSchedule(schedule: Schedule, now: number): Schedule {
  if (schedule.definition.length > LONGEST_DEFINITION)
    throw new CroreError('PAYLOAD_TOO_LARGE', 'a schedule is too large');
  try {
    return checkSchedule(schedule, now);
  } catch (error) {
    if (error instanceof CroreError) throw error;
    throw new CroreError('BAD_OPTION', `schedule '${schedule.name}' has an unreadable definition`);
  }
}

function infoOf(schedule: Schedule) {
  const { name, queue, cron, every, timezone, catchUp } = scheduleView(schedule);
  return {
    name,
    queue,
    cron,
    every: every === undefined ? undefined : fromMs(every),
    timezone,
    catchUp: CATCH_UPS.indexOf(catchUp) as WireCatchUp,
    next: fromTime(schedule.next),
    last: fromTime(schedule.last),
    record: fromSchedule(schedule),
  };
}
