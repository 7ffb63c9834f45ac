import { isCroreError } from '../../errors.js';
import {
  type AddOutcome,
  type Claim,
  CREATED,
  type ScheduleStore,
  type Signal,
  type SourceStore,
  type Store,
} from '../../store/store.js';
import type { BreakerLog } from '../logging/breaker-log.js';
import type { Metrics } from './metrics.js';

/** The verbs that are calls to the store; all else of it is passed on as it is. */
const VERBS = [
  'push',
  'add',
  'claim',
  'settle',
  'recordProgress',
  'join',
  'heartbeat',
  'leave',
  'leasesOf',
  'sweep',
  'get',
  'list',
  'dependents',
  'count',
  'queues',
  'workers',
  'reportSuccess',
  'cancel',
  'rerun',
  'update',
  'remove',
  'move',
  'settings',
  'configure',
  'obliterate',
  'watchForEnd',
] as const;
type Delivery = Extract<Signal, { type: 'delivered' }>;
type Verb = (typeof VERBS)[number];
type AnyVerb = (...args: never[]) => Promise<unknown>;

/** Counts what a call has done; called with its arguments and its result. */
type Count = (args: never, result: never) => void;

/** The same store, with its calls counted and timed: once per call, which is a batch, not per job. */
export function observedStore(store: Store, metrics: Metrics, breakers: BreakerLog): Store {
  const counts: Partial<Record<Verb, Count>> = {
    push: ([queue, tasks]: Parameters<Store['push']>, accepted: boolean) => {
      if (accepted) metrics.pushed(queue, tasks.length);
    },
    add: ([queue]: Parameters<Store['add']>, outcomes: AddOutcome[]) => metrics.added(queue, outcomes),
    claim: ([{ queue }]: Parameters<Store['claim']>, claim: Claim) => {
      if (claim.entries.length > 0) metrics.claimed(queue, claim.entries, store.now());
      breakers.claimed(queue, claim);
    },
    settle: ([queue, settlements]: Parameters<Store['settle']>, applied: boolean[]) =>
      metrics.settled(queue, settlements, applied),
    reportSuccess: ([queue]: Parameters<Store['reportSuccess']>, applied: boolean[]) =>
      metrics.reported(queue, applied.filter(Boolean).length),
  };
  const observed: Partial<Record<Verb, AnyVerb>> = {};
  for (const verb of VERBS) {
    observed[verb] = timed(verb, (store[verb] as AnyVerb).bind(store), metrics, counts[verb]);
  }
  return {
    ...(observed as unknown as Pick<Store, Verb>),
    now: () => store.now(),
    threadUrl: store.threadUrl,
    maxParallelClaims: store.maxParallelClaims,
    warnings: store.warnings,
    schedules: observedSchedules(store.schedules, metrics),
    events: store.events,
    sources: observedSources(store.sources, metrics),
    batches: store.batches,
    history: store.history,
    raw: store.raw,
    sweepQuiet: store.sweepQuiet?.bind(store),
    withReady: store.withReady?.bind(store),
    addIn:
      store.addIn &&
      ((connection, queue, jobs, limits) => {
        const outcomes = store.addIn!(connection, queue, jobs, limits);
        metrics.added(queue, outcomes);
        return outcomes;
      }),
    addInAsync:
      store.addInAsync &&
      (async (connection, queue, jobs, limits) => {
        const outcomes = await store.addInAsync!(connection, queue, jobs, limits);
        metrics.added(queue, outcomes);
        return outcomes;
      }),
    backup: store.backup?.bind(store),
    withdraw: store.withdraw?.bind(store),
    subscribe: (queue, listener) =>
      store.subscribe(queue, (signal) =>
        listener(signal.type === 'delivered' ? counted(signal, queue, store, metrics) : signal),
      ),
    close: () => store.close(),
  };
}

/** Delivered entries count as claimed when a worker takes them. */
function counted(signal: Delivery, queue: string, store: Store, metrics: Metrics): Delivery {
  const entries = () => {
    const taken = signal.entries();
    metrics.claimed(queue, taken, store.now());
    return taken;
  };
  return { ...signal, entries };
}

function observedSchedules(schedules: ScheduleStore, metrics: Metrics): ScheduleStore {
  return {
    put: (schedule) => schedules.put(schedule),
    fire: async (schedule, firing) => {
      const fired = await schedules.fire(schedule, firing);
      if (fired)
        metrics.added(
          schedule.queue,
          firing.jobs.map(() => CREATED),
        );
      return fired;
    },
    list: () => schedules.list(),
    areNone: schedules.areNone?.bind(schedules),
    remove: (name) => schedules.remove(name),
  };
}

function observedSources(sources: SourceStore, metrics: Metrics): SourceStore {
  return {
    add: async (queue, jobs, step) => {
      const outcomes = await sources.add(queue, jobs, step);
      if (outcomes !== 'stale') metrics.added(queue, outcomes);
      return outcomes;
    },
    position: (queue, source) => sources.position(queue, source),
  };
}

/** No more than one promise per call: a claim of a single job is a call, too. */
function timed(verb: Verb, call: AnyVerb, metrics: Metrics, count?: Count): AnyVerb {
  let record: ((seconds: number) => void) | undefined;
  return (...args) => {
    const began = performance.now();
    return call(...args).then(
      (result) => {
        record ??= metrics.calls.recorder(verb);
        record((performance.now() - began) / 1_000);
        count?.(args as never, result as never);
        return result;
      },
      (error: unknown) => {
        metrics.errors.add(1, verb, isCroreError(error) ? error.code : 'UNKNOWN');
        throw error;
      },
    );
  };
}
