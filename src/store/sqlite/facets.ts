import type { State } from '../../job/job.js';
import type { BatchStore, EventStore, HistoryStore, ScheduleStore, SourceStore } from '../store.js';
import type { QueueAccess } from './access.js';
import { closeBatch, openMembers } from './batches.js';
import type { Signals } from './signals.js';
import { QueueCounters } from './tables.js';
import { addFromSource, sourcePosition } from './verbs/add-from-source.js';
import { readEvents, recordEvents } from './verbs/events.js';
import { readHistory, recordHistory } from './verbs/history.js';
import { fireSchedule, listSchedules, putSchedule, removeSchedule } from './verbs/schedules.js';

export function scheduleStore(access: QueueAccess, signals: Signals): ScheduleStore {
  const { tables, now, committer } = access;
  return {
    put: (schedule) => access.write(schedule.queue, (n) => putSchedule(tables, n, schedule)),
    fire: async (schedule, firing) => {
      const fired = await access.write(schedule.queue, (n) => fireSchedule(tables, n, schedule, firing, now()));
      if (fired) signals.emit(schedule.queue, { type: 'work' });
      return fired;
    },
    list: () => access.readAll(() => listSchedules(tables)),
    remove: (name) => committer.run(() => removeSchedule(tables, name)),
  };
}

export function eventStore(access: QueueAccess): EventStore {
  const { tables, now } = access;
  return {
    record: (queue, ms) => access.write(queue, (n) => recordEvents(tables, new QueueCounters(tables, n), ms, now())),
    read: (queue, after, limit) =>
      access.read(queue, { events: [], gap: true }, (n) => readEvents(tables, n, after, limit)),
  };
}

export function historyStore(access: QueueAccess): HistoryStore {
  const { tables, now } = access;
  return {
    // The history of all queues has a row of its own; a queue that has been forgotten meanwhile gets none.
    record: (queue, activity) =>
      queue === ''
        ? access.write(queue, (n) => recordHistory(tables, n, activity, now()))
        : access.update(queue, undefined, (n) => recordHistory(tables, n, activity, now())),
    read: (queue, range) => access.read(queue, [], (n) => readHistory(tables, n, range, now())),
  };
}

export function sourceStore(access: QueueAccess, signals: Signals): SourceStore {
  const { tables, now } = access;
  return {
    add: async (queue, jobs, step) => {
      const outcomes = await access.write(queue, (n) => addFromSource(tables, n, jobs, step, now()));
      if (outcomes !== 'stale') signals.emit(queue, { type: 'work' });
      return outcomes;
    },
    position: (queue, source) => access.read(queue, '', (n) => sourcePosition(tables, n, source)),
  };
}

export function batchStore(access: QueueAccess, signals: Signals): BatchStore {
  const { tables, now } = access;
  return {
    close: async (queue, id) => {
      const state = await access.update<State | undefined>(queue, undefined, (n) => {
        const counters = new QueueCounters(tables, n);
        const after = closeBatch(tables, counters, id, now());
        counters.write();
        return after;
      });
      signals.emit(queue, { type: 'work' });
      return state;
    },
    openMembers: (queue, id, { limit, cursor }) =>
      access.read(queue, { members: [] }, (n) => openMembers(tables, n, id, limit, cursor ?? '')),
  };
}
