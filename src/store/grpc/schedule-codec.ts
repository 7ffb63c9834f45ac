import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  QueueLimitsSchema,
  ReadEventsResponse,
  ScheduleRecord,
  ScheduleRecordSchema,
  QueueLimits as WireLimits,
} from '../../proto/crore/v1/crore_pb.js';
import type { EventPage, EventType, NewSchedule, QueueLimits, Rate, Schedule } from '../store.js';
import { fromMs, fromTime, toMs, toTime } from './times.js';

/** Converts limits, schedules and events to messages and back. */

type Part = { concurrency?: number; rate?: Rate };

export function fromLimits({ group, ...queue }: QueueLimits): MessageInitShape<typeof QueueLimitsSchema> {
  return { queue: fromPart(queue), group: group && fromPart(group) };
}

function fromPart({ concurrency, rate }: Part) {
  return {
    concurrency: concurrency === undefined ? undefined : BigInt(concurrency),
    rate: rate && { count: BigInt(rate.count), per: fromMs(rate.per) },
  };
}

export function toLimits(limits: WireLimits | undefined): QueueLimits {
  const group = toPart(limits?.group);
  return { ...toPart(limits?.queue), ...(Object.keys(group).length > 0 ? { group } : {}) };
}

function toPart(part: WireLimits['queue']): Part {
  const known: Part = {};
  if (part?.concurrency !== undefined) known.concurrency = Number(part.concurrency);
  if (part?.rate) known.rate = { count: Number(part.rate.count), per: toMs(part.rate.per) ?? 0 };
  return known;
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
