import { checkInteger, checkOptions } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import { type NodeEnd, STATE_NAMES, type StateName } from '../graph/node-spec.js';
import type { Flow } from '../input/define.js';

export interface RunOptions {
  /** How many nodes run at once; default 8. */
  concurrency?: number;
  /** Record the flow in this store, so that it can be resumed and inspected and workers can join; default: nowhere. */
  store?: string;
  /** Resume the unfinished flow of the same name. */
  resume?: boolean;
  /** After a failure, run everything that can still run. */
  keepGoing?: boolean;
  /** Run cached nodes as well. */
  force?: boolean;
  /** Run only this node and its dependencies. */
  only?: string;
  /** Stops the flow. */
  signal?: AbortSignal;
  /** Called for each node that finishes. */
  onEnd?: (end: NodeEnd) => void;
}

export interface RunReport<R> {
  /** `done` when every node is done. */
  state: 'done' | 'failed' | 'interrupted' | 'cancelled' | 'running';
  counts: { done: number; failed: number; skipped: number; cancelled: number; cached: number };
  /** Results of the nodes that are done. */
  results: Partial<R>;
  /** How each node ended. */
  states: { [K in keyof R]: StateName };
  /** Error messages of failed nodes. */
  errors: Partial<Record<keyof R, string>>;
}

const KNOWN = ['concurrency', 'store', 'resume', 'keepGoing', 'force', 'only', 'signal', 'onEnd'] as const;

/** Runs a flow in this process; resolves when every node has finished, even if some failed. */
export async function run<T>(flow: Flow<T>, options: RunOptions = {}): Promise<RunReport<Flow<T>['results']>> {
  checkOptions(options, KNOWN, 'run');
  const { concurrency, signal, onEnd } = options;
  const slots = concurrency === undefined ? 8 : checkInteger(concurrency, 'concurrency', 1, 100_000);
  if (typeof flow?.graph !== 'function') throw new CroreError('BAD_FLOW', 'run needs a flow created with flow({ … })');
  const graph = flow.graph();
  const watchers = onEnd ? [{ ended: onEnd }] : [];
  const { store, resume, keepGoing, force, only } = options;
  // Loaded here, because code that only defines a flow does not need it.
  const { CANCELLED, startFlow } = await import('./start.js');
  const started = await startFlow(graph, { slots, store, resume, keepGoing, force, only, watchers });
  const halt = () => started.run.halt(CANCELLED);
  signal?.addEventListener('abort', halt, { once: true });
  if (signal?.aborted) halt();
  const state = await started.finish().finally(() => signal?.removeEventListener('abort', halt));
  const { values, errors, counts, scheduler } = started.run;
  const named = <V>(entries: Iterable<[number, V]>) =>
    Object.fromEntries([...entries].map(([node, value]) => [graph.ids[node], value]));
  const states = Object.fromEntries(graph.ids.map((id, i) => [id, STATE_NAMES[scheduler.states[i]!]]));
  return { state, counts: { ...counts }, results: named(values), states, errors: named(errors) } as RunReport<
    Flow<T>['results']
  >;
}
