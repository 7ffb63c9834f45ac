import type { Entry } from '../../job/job.js';
import type { AddOutcome, Settlement } from '../../store/store.js';
import { type ActivityRecorder, count } from '../history/activity-recorder.js';
import { Counter, Histogram, type Metric } from './series.js';

/** From a millisecond to an hour. */
const TIMES = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1_800, 3_600];
/** From a tenth of a millisecond to ten seconds. */
const CALLS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 10];

/** What this process has done, for an observer who comes by now and then. Everything here counts; nothing asks the store. */
export class Metrics {
  readonly adds = new Counter('crore_adds_total', 'Jobs this process has added, by outcome.', ['queue', 'outcome']);
  readonly pushes = new Counter('crore_pushes_total', 'Raw tasks this process has pushed.', ['queue']);
  readonly claims = new Counter('crore_claims_total', 'Entries this process has claimed.', ['queue']);
  readonly outcomes = new Counter('crore_outcomes_total', 'Outcomes this process has reported.', ['queue', 'outcome']);
  readonly leasesLost = new Counter('crore_leases_lost_total', 'Outcomes that came too late and were refused.', [
    'queue',
  ]);
  readonly waits = new Histogram('crore_wait_seconds', 'From when a job could run to its claim.', ['queue'], TIMES);
  readonly runs = new Histogram('crore_run_seconds', 'How long handlers of this process ran.', ['queue'], TIMES);
  readonly calls = new Histogram('crore_store_call_seconds', 'Duration of calls to the store.', ['verb'], CALLS);
  readonly errors = new Counter('crore_store_errors_total', 'Calls to the store that failed.', ['verb', 'code']);

  constructor(
    /** Keeps the history of the queues; absent where the store keeps none. */
    private readonly activity?: ActivityRecorder,
  ) {}

  get all(): Metric[] {
    const { adds, pushes, claims, outcomes, leasesLost, waits, runs, calls, errors } = this;
    return [adds, pushes, claims, outcomes, leasesLost, waits, runs, calls, errors];
  }

  added(queue: string, results: readonly AddOutcome[]): void {
    for (const [outcome, count] of counted(results, (result) => result.outcome)) {
      this.adds.add(count, queue, outcome);
      if (outcome === 'created') this.activity?.added(queue, count);
    }
  }

  pushed(queue: string, count: number): void {
    this.pushes.add(count, queue);
    this.activity?.added(queue, count);
  }

  claimed(queue: string, entries: readonly Entry[], now: number): void {
    if (entries.length === 0) return;
    this.claims.add(entries.length, queue);
    const record = this.waits.recorder(queue);
    const waits = this.activity?.waitsOf(queue);
    for (const { job } of entries) {
      if (!job) continue;
      const wait = Math.max(0, now - (job.runAt ?? job.createdAt));
      record(wait / 1_000);
      if (waits) count(waits, wait);
    }
  }

  settled(queue: string, settlements: readonly Settlement[], applied: readonly boolean[]): void {
    const isValid = !applied.includes(false);
    const valid = isValid ? settlements : settlements.filter((_settlement, i) => applied[i]);
    if (!isValid) this.leasesLost.add(settlements.length - valid.length, queue);
    for (const [outcome, count] of counted(valid, outcomeOf)) {
      this.outcomes.add(count, queue, outcome);
      this.#ended(queue, outcome, count);
    }
  }

  /** Jobs whose success was reported without a token. */
  reported(queue: string, count: number): void {
    this.outcomes.add(count, queue, 'done');
    if (count > 0) this.#ended(queue, 'done', count);
  }

  /** Records how long the handlers of a queue run. */
  runRecorder(queue: string): (ms: number) => void {
    const record = this.runs.recorder(queue);
    return (ms) => {
      record(ms / 1_000);
      this.activity?.ran(queue, ms);
    };
  }

  #ended(queue: string, outcome: string, count: number): void {
    if (outcome === 'done' || outcome === 'dead') this.activity?.ended(queue, outcome, count);
    if (outcome === 'dead' || outcome === 'retry' || outcome === 'lost') this.activity?.ended(queue, 'failed', count);
  }
}

/** A batch usually has one or two outcomes: counting them first saves a look-up per job. */
function counted<T>(items: readonly T[], wordOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) {
    const word = wordOf(item);
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

/** The words of the events: an entry that returns with an error was lost or has failed, without one it was snoozed or released. */
function outcomeOf({ outcome }: Settlement): string {
  if (outcome.to === 'scheduled') return outcome.error === undefined ? 'snoozed' : 'retry';
  if (outcome.to === 'ready') return outcome.error === undefined ? 'released' : 'lost';
  return outcome.to;
}
