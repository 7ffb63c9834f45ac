import { afterAll, beforeAll } from 'vitest';
import { STATES } from '../../../dist/job/job.js';
import { finish } from '../../../dist/job/transitions.js';
import type { Signal, Store, WorkerSession } from '../../../dist/store/store.js';
import { settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';

export interface StoreUnderTest {
  name: string;
  open: (clock: () => number) => Promise<{ store: Store; close: () => Promise<void> }>;
  /** Why it does not support claiming raw tasks by hand or keeping a history, if it does not. */
  withoutRaw?: string;
  /** It parses schedules and fires them itself, so tests with unparsable schedules are skipped. */
  firesSchedules?: boolean;
}

export const LEASE = 10_000;
export const SWEEP = { lease: LEASE, every: 0 };
export const random = () => 0.5;

/** A running store with a clock that only moves when set, and helpers shared by the tests. */
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
    /** Set before the tests run. */
    store: undefined as unknown as Store,
    now: 1_800_000_000_000,
    newQueue: () => `q${++queues}-${name}`,
    session,
    joined: async (queue: string, worker = 'w1') => {
      await bench.store.join(queue, worker, { lease: LEASE, info: '{}' });
      return session(queue, worker);
    },
    claim,
    /** Over a network, a subscription is active once `reset` arrives; elsewhere it is active immediately. */
    listening: async (queue: string, listener: (signal: Signal) => void) => {
      let stands = bench.store.maxParallelClaims === 1;
      const stop = bench.store.subscribe(queue, (signal) => {
        if (signal.type === 'reset') stands = true;
        listener(signal);
      });
      await until('the subscription is active', () => stands);
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
