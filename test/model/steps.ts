import fc from 'fast-check';
import type { Breaker, QueueLimits } from '../../dist/store/store.js';

/** One step of a history. Numbers select among what exists, so that every sequence is valid. */
export type Step = (JobStep | TaskStep | ScheduleStep | EventStep | SourceStepPlan | ServerFault) & {
  /** The connection breaks with the first reply, and the call is repeated: nothing else may be different. */
  loseReply?: boolean;
};

/** What happens to a server that forgets its scripts, and must not be noticed. */
export type ServerFault = { do: 'flush scripts' };

export interface JobPlan {
  id: number;
  priority: number;
  delay: number;
  key: number;
  reservation: number;
  needs: number[];
  on: boolean;
  group: number;
  mode: number;
}

export type How = 'done' | 'fail' | 'die' | 'release' | 'snooze';

export type JobStep =
  | { do: 'add'; jobs: JobPlan[] }
  | { do: 'push'; tasks: number }
  | { do: 'claim'; worker: number; n: number }
  | { do: 'settle'; picks: { which: number; how: How }[] }
  | { do: 'progress'; which: number }
  | { do: 'heartbeat' | 'join'; worker: number }
  | { do: 'wait'; ms: number }
  | { do: 'sweep' }
  | { do: 'cancel' | 'reportSuccess' | 'remove'; id: number }
  | { do: 'retry dead'; id: number }
  | { do: 'rerun'; which: number }
  | { do: 'update'; which: number; priority?: number; delay?: number; payload?: number }
  | { do: 'limits'; limits: QueueLimits }
  | { do: 'breaker'; breaker: Breaker | null }
  | { do: 'pause'; paused: boolean };

/** Raw tasks claimed by hand. */
export type TaskStep =
  | { do: 'unique' | 'drop'; task: number }
  | { do: 'take'; worker: number; n: number }
  | { do: 'finish'; which: number }
  | { do: 'clear' }
  | { do: 'expire session'; worker: number };

/** `which` selects a schedule as it was seen now or earlier. */
export type ScheduleStep =
  | { do: 'schedule'; name: number; every: number; all: boolean; elsewhere: boolean }
  | { do: 'fire' | 'run now'; which: number }
  | { do: 'unschedule'; name: number };

/** `back`: how many events before the last known one the reader resumes. */
export type EventStep = { do: 'record'; ms: number } | { do: 'read'; back: number; limit: number };

/** `back`: how many steps old the source position known to the relay is. */
export type SourceStepPlan = { do: 'add from source'; source: number; back: number; jobs: JobPlan[] };

const id = fc.integer({ min: 0, max: 9 });
const worker = fc.integer({ min: 0, max: 2 });
const which = fc.nat(30);
const job: fc.Arbitrary<JobPlan> = fc.record({
  id,
  priority: fc.constantFrom(0, 0, 0, 1, 2, -1),
  delay: fc.constantFrom(0, 0, 0, 50, 120),
  key: fc.constantFrom(0, 0, 0, 1, 2, 3, 4),
  reservation: fc.constantFrom(0, 0, 300),
  needs: fc.oneof(
    { weight: 3, arbitrary: fc.constant<number[]>([]) },
    { weight: 1, arbitrary: fc.array(id, { maxLength: 3 }) },
  ),
  on: fc.boolean(),
  group: fc.constantFrom(0, 0, 0, 1, 2, 3),
  mode: fc.nat(2),
});
const how = fc.constantFrom<How>('done', 'done', 'fail', 'die', 'release', 'snooze');

function some<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T[]> {
  return fc.array(arbitrary, { minLength: 1, maxLength: 4 });
}

function upTo(max: number): fc.Arbitrary<number> {
  return fc.integer({ min: 1, max });
}

function step<S extends Step>(weight: number, name: S['do'], rest: object = {}): fc.WeightedArbitrary<Step> {
  return { weight, arbitrary: fc.record({ do: fc.constant(name), ...rest }) as fc.Arbitrary<Step> };
}

const loseReply = fc.nat(19).map((n) => n === 0);

/** A step whose call is repeated when its reply is lost. */
function repeatable<S extends Step>(weight: number, name: S['do'], rest: object = {}): fc.WeightedArbitrary<Step> {
  return step(weight, name, { ...rest, loseReply });
}

const jobSteps = [
  repeatable(6, 'add', { jobs: some(job) }),
  step(2, 'push', { tasks: upTo(3) }),
  step(6, 'claim', { worker, n: upTo(4) }),
  repeatable(6, 'settle', { picks: some(fc.record({ which, how })) }),
  step(1, 'progress', { which }),
  repeatable(2, 'heartbeat', { worker }),
  repeatable(3, 'join', { worker }),
  step(5, 'wait', { ms: fc.constantFrom(1, 50, 70, 300, 600, 1_001, -1_500) }),
  repeatable(3, 'sweep'),
  repeatable(2, 'cancel', { id }),
  step(2, 'reportSuccess', { id }),
  repeatable(1, 'retry dead', { id }),
  repeatable(1, 'rerun', { which }),
  repeatable(2, 'update', {
    which,
    priority: fc.constantFrom(undefined, undefined, 0, 1, -1),
    delay: fc.constantFrom(undefined, undefined, 0, 60, 150),
    payload: fc.constantFrom(undefined, 1, 2),
  }),
  repeatable(1, 'remove', { id }),
  repeatable(1, 'breaker', {
    breaker: fc.constantFrom(
      null,
      { failures: 1, pause: 60 },
      { failures: 2, pause: 200 },
      { failures: 3, pause: 600 },
    ),
  }),
  repeatable(1, 'pause', { paused: fc.boolean() }),
];
const taskSteps = [
  step(5, 'unique', { task: fc.nat(1) }),
  step(2, 'take', { worker, n: upTo(3) }),
  step(2, 'finish', { which }),
  step(1, 'drop', { task: fc.nat(1) }),
  step(1, 'clear'),
  step(1, 'expire session', { worker }),
];
const scheduleSteps = [
  step(3, 'schedule', {
    name: fc.constantFrom(0, 0, 1),
    every: fc.constantFrom(100, 100, 2_500),
    all: fc.boolean(),
    elsewhere: fc.constantFrom(false, false, true),
  }),
  step(4, 'fire', { which }),
  step(1, 'run now', { which }),
  step(1, 'unschedule', { name: fc.nat(1) }),
];
const eventSteps = [
  step(2, 'record', { ms: fc.constantFrom(100, 1_000, 5_000) }),
  step(2, 'read', { back: fc.nat(5), limit: fc.constantFrom(1, 3, 100) }),
];
const carrySteps = [
  step(3, 'add from source', { source: fc.nat(1), back: fc.constantFrom(0, 0, 1, 2), jobs: some(job) }),
];

const faultSteps = [step(1, 'flush scripts')];

export const anyStep = fc.oneof(
  ...jobSteps,
  ...taskSteps,
  ...scheduleSteps,
  ...eventSteps,
  ...carrySteps,
  ...faultSteps,
);

/** Set once, before the first step: a change of limits releases groups in no particular order. */
const rate = fc.constantFrom({ count: 2, per: 100 }, { count: 3, per: 600 }, undefined, undefined);
const concurrency = fc.constantFrom(1, 2, 4, undefined, undefined, undefined);
const part = fc.record({ concurrency, rate }).map(drop);
const ordered = fc.record({ ordered: fc.constant(true as const), rate }).map(drop);
export const anyLimits = fc
  .record({ concurrency, rate, group: fc.oneof(part, ordered) })
  .map(drop) as fc.Arbitrary<QueueLimits>;

function drop<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Partial<T>;
}
