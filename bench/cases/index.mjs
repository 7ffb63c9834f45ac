// Every measurement: what it runs, on which stores, and the figures it yields. A case of the report is one figure on
// one store for one of our ways of enqueueing. `options` are passed to the subjects that adjust their settings to them.
import { drain } from './drain.mjs';
import { bulk, oneByOne } from './enqueue.mjs';
import { latency } from './latency.mjs';
import { cpu, memory } from './server-cost.mjs';
import { latencyInTwoProcesses, twoProcesses } from './two-processes.mjs';

const ALL = ['redis', 'sqlite', 'postgres'];
const SERVERS = ['redis', 'postgres'];
const RATE = [{ key: 'rate', unit: 'jobs/s', better: 'higher' }];
const PICKUP = ['p50', 'p99'].map((key) => ({ key, label: ` ${key}`, unit: 'ms', better: 'lower' }));
const BYTES = [{ key: 'bytes', unit: 'bytes', better: 'lower' }];
const CPU = [{ key: 'cpu', unit: 'µs', better: 'lower' }];

export const MEASUREMENTS = [
  { name: 'enqueue one by one', stores: ALL, run: oneByOne, figures: RATE },
  { name: 'bulk enqueue', stores: ALL, run: bulk, figures: RATE },
  { name: 'drain, concurrency 1', stores: ALL, run: drain(1), figures: RATE, options: { concurrency: 1 } },
  { name: 'drain, concurrency 100', stores: ALL, run: drain(100), figures: RATE },
  { name: 'two processes', stores: SERVERS, run: twoProcesses, figures: RATE },
  { name: 'pickup latency', stores: ALL, run: latency, figures: PICKUP, options: { latency: true, concurrency: 1 } },
  {
    name: 'pickup latency, two processes',
    stores: ALL,
    run: latencyInTwoProcesses,
    figures: PICKUP,
    options: { latency: true, concurrency: 1 },
  },
  { name: 'memory per waiting job', stores: SERVERS, run: memory, figures: BYTES },
  { name: 'server CPU per job', stores: SERVERS, run: cpu, figures: CPU },
  { name: 'enqueue by hand, 100 at once', family: 'worqr', stores: ['redis'], run: oneByOne, figures: RATE },
  {
    name: 'dequeue and finish by hand, 100 at once',
    family: 'worqr',
    stores: ['redis'],
    run: drain(100),
    figures: RATE,
  },
  { name: 'memory per waiting task', family: 'worqr', stores: ['redis'], run: memory, figures: BYTES },
];

/** The cases of a measurement on a store, each with the name of our subject it compares. */
export function casesOf(measurement, store, ours) {
  return measurement.figures.flatMap((figure) =>
    ours.map((subject) => ({
      name: `${store} ${measurement.name}${figure.label ?? ''} (${subject.options.verb})`,
      subject: subject.name,
      figure,
    })),
  );
}
