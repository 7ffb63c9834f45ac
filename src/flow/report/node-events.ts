import type { NodeOutcome, NodeTask } from '../executors/executor.js';
import type { NodeEnd } from '../graph/node-spec.js';
import type { Run } from '../run/run.js';
import type { Watcher } from './watcher.js';

/** What a run reports about a node, in every report format. */
export function reportOf({ id, state, attempts, start, seconds, exit }: NodeEnd): Record<string, unknown> {
  return { id, state, attempts, start: new Date(start).toISOString(), seconds: round(seconds), exit };
}

export const round = (seconds: number): number => Math.round(seconds * 1e6) / 1e6;

/** Writes one JSON object per line for each event, as it happens. */
export class JsonEvents implements Watcher {
  constructor(private readonly write: (text: string) => void) {}

  ended(end: NodeEnd): void {
    const { error, output, worker, cached, value } = end;
    this.#say({
      ...reportOf(end),
      ...(cached ? { cached } : {}),
      ...(worker ? { worker } : {}),
      ...(error ? { error } : {}),
      ...(output ? { output } : {}),
      ...(value === undefined ? {} : { value }),
    });
  }

  retried(task: NodeTask, outcome: NodeOutcome, wait: number): void {
    const { id, attempt } = task;
    this.#say({
      id,
      state: 'retry',
      attempts: attempt,
      start: new Date(task.startedAt).toISOString(),
      exit: outcome.exit,
      error: outcome.error,
      wait: wait / 1_000,
    });
  }

  dropped(id: string, state: 'skipped' | 'cancelled'): void {
    this.#say({ id, state, attempts: 0 });
  }

  finish(run: Run): void {
    this.#say({
      flow: run.graph.name,
      ...run.counts,
      seconds: round((Date.now() - run.startedAt) / 1_000),
      exit: run.exit,
    });
  }

  #say(event: object): void {
    this.write(`${JSON.stringify(event)}\n`);
  }
}

/** Writes one tab-separated line for each finished node, for programs and people. */
export class Joblog implements Watcher {
  constructor(private readonly write: (text: string) => void) {
    write('id\tstate\tattempts\tstart\tseconds\texit\n');
  }

  ended(end: NodeEnd): void {
    this.write(`${Object.values(reportOf(end)).join('\t')}\n`);
  }

  dropped(id: string, state: string): void {
    this.write(`${id}\t${state}\t0\t\t\t\n`);
  }
}
