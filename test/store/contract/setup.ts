import { afterAll, beforeAll } from 'vitest';
import { STATES } from '../../../dist/job/job.js';
import { finish } from '../../../dist/job/transitions.js';
import type { Signal, Store, WorkerSession } from '../../../dist/store/store.js';
import { settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';

export interface StoreUnderTest {
  name: string;
  open: (clock: () => number) => Promise<{ store: Store; close: () => Promise<void> }>;
  /** Why it has no raw tasks by hand, if it has none. */
  withoutRaw?: string;
  /** It reads schedules and fires them by itself: tests that bring unreadable ones are not for it. */
  firesSchedules?: boolean;
}

export const LEASE = 10_000;
export const SWEEP = { lease: LEASE, every: 0 };
export const random = () => 0.5;

/** A store at work, with a clock that stands still unless it is set, and what tests do with it again and again. */
export type Bench = ReturnType<typeof setUpBench>;

export function setUpBench({ name, open }: StoreUnderTest) {
  let queues = 0;
  let close: () => Promise<void>;

  beforeAll(async () => {
    ({ store: bench.store, close } = await open(() => bench.now));
  }, 60_000);
  afterAll(() => close());

  const session = (queue: string, worker = 'w1'): WorkerSession => ({ queue, worker, lease: LEASE });
  const claim = async (queue: string, n: number, worker = 'w1') =>
    (await bench.store.claim(session(queue, worker), n)).entries;

  const bench = {
    /** There once the tests run. */
    store: undefined as unknown as Store,
    now: 1_800_000_000_000,
    newQueue: () => `q${++queues}-${name}`,
    session,
    joined: async (queue: string, worker = 'w1') => {
      await bench.store.join(queue, worker, { lease: LEASE, info: '{}' });
      return session(queue, worker);
    },
    claim,
    /** Across a network a subscription stands when `reset` says so; elsewhere it stands at once. */
    listening: async (queue: string, listener: (signal: Signal) => void) => {
      let stands = bench.store.maxParallelClaims === 1;
      const stop = bench.store.subscribe(queue, (signal) => {
        if (signal.type === 'reset') stands = true;
        listener(signal);
      });
      await until('the subscription stands', () => stands);
      return stop;
    },
    total: async (queue: string) => {
      const counts = await bench.store.count(queue);
      return STATES.reduce((sum, state) => sum + counts[state], 0);
    },
    finishAll: async (queue: string, n: number) => {
      const entries = await claim(queue, n);
      await bench.store.settle(
        queue,
        entries.map((entry) => settlementOf(entry, finish(entry.job!))),
      );
    },
  };
  return bench;
}
