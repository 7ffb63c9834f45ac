import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  GetBreakerResponse,
  GetBreakerResponseSchema,
  QueueLimitsSchema,
  ReadEventsResponse,
  ScheduleRecord,
  ScheduleRecordSchema,
  Breaker as WireBreaker,
  QueueLimits as WireLimits,
} from '../../proto/crore/v1/crore_pb.js';
import type {
  Breaker,
  EventPage,
  EventType,
  GroupLimits,
  NewSchedule,
  QueueLimits,
  QueueSettings,
  Schedule,
} from '../store.js';
import { fromMs, fromTime, toMs, toTime } from './times.js';

/** Converts limits, breakers, schedules and events to messages and back. */

/** Only groups have an order. */
type Part = GroupLimits;

export function fromLimits({ group, ...queue }: QueueLimits): MessageInitShape<typeof QueueLimitsSchema> {
  return { queue: fromPart(queue), group: group && fromPart(group) };
}

function fromPart({ concurrency, rate, ordered }: Part) {
  return {
    concurrency: concurrency === undefined ? undefined : BigInt(concurrency),
    rate: rate && { count: BigInt(rate.count), per: fromMs(rate.per) },
    ordered,
  };
}

export function toLimits(limits: WireLimits | undefined): QueueLimits {
  const group = toPart(limits?.group);
  return { ...toPart(limits?.queue), ...(Object.keys(group).length > 0 ? { group } : {}) };
}

function toPart(part: WireLimits['queue']): Part {
  const known: Part = {};
  if (part?.concurrency !== undefined) known.concurrency = Number(part.concurrency);
  if (part?.ordered) known.ordered = true;
  if (part?.rate) known.rate = { count: Number(part.rate.count), per: toMs(part.rate.per) ?? 0 };
  return known;
}

type BreakerPart = Pick<QueueSettings, 'breaker' | 'breakerState'>;

export function fromBreaker({ breaker, breakerState }: BreakerPart): MessageInitShape<typeof GetBreakerResponseSchema> {
  return {
    breaker: breaker ? { failures: BigInt(breaker.failures), pause: fromMs(breaker.pause) } : undefined,
    failed: BigInt(breakerState?.failed ?? 0),
    openUntil: fromTime(breakerState?.until),
  };
}

export function toBreaker({ failures, pause }: WireBreaker): Breaker {
  return { failures: Number(failures), pause: toMs(pause) ?? 0 };
}

/** The part of the settings that is about the breaker. */
export function toBreakerPart({ breaker, failed, openUntil }: GetBreakerResponse): BreakerPart {
  if (!breaker) return {};
  const until = toTime(openUntil);
  const breakerState = { failed: Number(failed), ...(until === undefined ? {} : { until }) };
  return { breaker: toBreaker(breaker), breakerState };
}

export function fromSchedule(schedule: Schedule): MessageInitShape<typeof ScheduleRecordSchema> {
  const { name, queue, definition, since, next, last } = schedule;
  return { name, queue, definition, since: fromTime(since), next: fromTime(next), last: fromTime(last) };
}

export function toSchedule(record: ScheduleRecord | undefined): Schedule {
  const { name = '', queue = '', definition = '', since, next, last } = record ?? {};
  const schedule: NewSchedule & Schedule = { name, queue, definition, since: toTime(since) ?? 0 };
  if (next) schedule.next = toTime(next);
  if (last) schedule.last = toTime(last);
  return schedule;
}

export function toEvents({ events, gap }: ReadEventsResponse): EventPage {
  return {
    events: events.map(({ position, type, id, at, info }) => ({
      position,
      type: type as EventType,
      id,
      at: toTime(at) ?? 0,
      info,
    })),
    gap,
  };
}
