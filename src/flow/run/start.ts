import type { Engine } from '../../engine/engine.js';
import { CroreError } from '../../errors.js';
import type { Executor, NodeOutcome, NodeTask } from '../executors/executor.js';
import { InProcessExecutor } from '../executors/in-process-executor.js';
import { type Launch, Launchers } from '../executors/launchers.js';
import { ProcessExecutor } from '../executors/process-executor.js';
import { QueueExecutor } from '../executors/queue-executor.js';
import { queueOf, RemoteExecutor } from '../executors/remote-executor.js';
import { NEVER, type Renewal } from '../executors/renewal.js';
import { ShellExecutor } from '../executors/shell-executor.js';
import { type Graph, onlyNode } from '../graph/graph.js';
import type { NodeEnd } from '../graph/node-spec.js';
import { computeWeights } from '../graph/weights.js';
import type { Cache } from '../journal/cache.js';
import type { FlowInfo, FlowState, Journal } from '../journal/journal.js';
import { openJournal } from '../journal/open.js';
import type { Watcher } from '../report/watcher.js';
import type { LocalState } from './local-state.js';
import { claimFlow, journalOf } from './resume.js';
import { Run } from './run.js';
import { reportOn } from './runner-report.js';

export interface StartOptions {
  /** How many nodes run at once in this process. */
  slots: number;
  /** Where the flow is recorded and workers join; absent: nowhere. */
  store?: string;
  /** Set for a flow without its own store: `store` is in this location, and no other workers look for work there. */
  localState?: LocalState;
  /** The file the flow came from. */
  file?: string;
  /** A module whose functions run in child processes. */
  module?: string;
  cwd?: string;
  keepGoing?: boolean;
  resume?: boolean | string;
  force?: boolean;
  only?: string;
  renewal?: Renewal;
  launches?: readonly Launch[];
  watchers?: readonly Watcher[];
}

/** Interval at which the runner renews its hold on the flow, in milliseconds. */
const BEAT = 1_000;

/** A flow that is ready to run: all resources are open, no node has started. */
export class Started {
  constructor(
    readonly run: Run,
    readonly info: FlowInfo,
    private readonly parts: Parts,
  ) {}

  /** Runs to the end and returns the final state of the flow. */
  async finish(): Promise<FlowState> {
    const { journal, cache, launchers, watchers, engine } = this.parts;
    const timer = setInterval(() => void this.#beat(), BEAT);
    let failure: Error | undefined;
    /** Closes everything even if a step fails, and reports the first failure. */
    const attempt = async (work: () => unknown) => {
      try {
        await work();
      } catch (error) {
        failure ??= error as Error;
      }
    };
    await attempt(async () => {
      launchers?.start((error) => this.run.abort(error));
      await this.run.run();
    });
    clearInterval(timer);
    const state = this.#state(failure);
    await attempt(() => launchers?.close());
    for (const executor of this.parts.executors) await attempt(() => executor.close());
    await attempt(() => cache?.save());
    for (const watcher of watchers) await attempt(() => watcher.finish?.(this.run));
    await attempt(() => journal.finish(state, this.run.counts));
    if (engine) await attempt(() => this.#clean(engine));
    await attempt(() => this.parts.close());
    if (failure) throw failure;
    return state;
  }

  #state(failure: Error | undefined): FlowState {
    if (failure) return 'interrupted';
    if (this.run.halted !== undefined) return this.run.halted === CANCELLED ? 'cancelled' : 'interrupted';
    return this.run.exit === 0 ? 'done' : 'failed';
  }

  async #beat(): Promise<void> {
    const held = await this.parts.journal.hold(() => reportOn(this.run)).catch(() => 'held' as const); // retried at the next interval
    if (held === 'cancel') this.run.halt(CANCELLED);
    if (held === 'lost')
      this.run.abort(new CroreError('LEASE_LOST', `flow '${this.info.id}' was taken over by another runner`));
  }

  /** Removes jobs that no worker took. After an interruption they stay, because a later run can use what runs remotely. */
  async #clean(engine: Engine): Promise<void> {
    const over = this.run.halted === undefined || this.run.halted === CANCELLED;
    if (over && this.parts.remote?.seen) await engine.store.obliterate(queueOf(this.info.id)).catch(() => {});
    await engine.close();
  }
}

export const CANCELLED = 'the flow was cancelled';

interface Parts {
  journal: Journal;
  cache: Cache | undefined;
  engine: Engine | undefined;
  remote: RemoteExecutor | undefined;
  executors: Executor[];
  launchers: Launchers | undefined;
  watchers: readonly Watcher[];
  close: () => Promise<void>;
}

/** Opens what a run needs, loads the results of earlier runs, and returns a run that has not started. */
export async function startFlow(graph: Graph, options: StartOptions): Promise<Started> {
  const only = options.only === undefined ? undefined : onlyNode(graph, findNode(graph, options.only));
  const kinds = new Set(graph.specs.map(({ work }) => work.kind));
  if (kinds.has('queue') && (options.store === undefined || options.localState)) {
    const first = graph.ids[graph.specs.findIndex(({ work }) => work.kind === 'queue')];
    throw new CroreError('BAD_FLOW', `node '${first}' is a job for a queue: --store is required`);
  }
  const cwd = options.cwd ?? process.cwd();
  const journal = await journalOf(options);
  const opened: { close(): Promise<void> }[] = [journal];
  try {
    const cached = graph.specs.some((spec) => spec.options.cache);
    const memories =
      options.localState && cached ? await openJournal(options.localState.memories, { relaxed: true }) : journal;
    if (memories !== journal) opened.unshift(memories);
    const cache = cached ? await openCache(graph, memories, cwd, options.force) : undefined;
    const { info, ends } = await claimFlow(graph, options, journal);
    const wantsEngine = options.store !== undefined && (!options.localState || (options.launches ?? []).length > 0);
    const engine = wantsEngine ? await openEngine(options.store!) : undefined;
    const shared = { env: graph.env, cwd, renewal: options.renewal ?? NEVER };
    const rounds = countFailures(ends);
    const away = { engine: engine!, flow: info.id, env: graph.env, cwd, module: options.module, rounds };
    const remote = engine ? new RemoteExecutor(away) : undefined;
    const executors = {
      shell: new ShellExecutor({ flow: info.id, ...shared }),
      function:
        options.module === undefined ? new InProcessExecutor() : new ProcessExecutor(options.module, shared.renewal),
      queue: engine ? new QueueExecutor(engine, info.id, rounds) : new NoQueue(),
    };
    const watchers = options.watchers ?? [];
    const restored = new Map(ends.map((end) => [end.id, end]));
    const run = new Run({
      graph,
      weights: computeWeights(graph, recorded(cache, ends)),
      slots: options.slots,
      journal,
      durable: options.store !== undefined,
      executors,
      remote,
      cache,
      keepGoing: options.keepGoing === true,
      watchers,
      restored,
      only,
    });
    const launches = options.launches ?? [];
    const launchers =
      launches.length > 0 ? new Launchers(launches, { flow: info.id, remote: remote!, watchers }) : undefined;
    const close = async () => {
      for (const one of opened) await one.close();
    };
    const all: Executor[] = [...Object.values(executors), ...(remote ? [remote] : [])];
    return new Started(run, info, { journal, cache, engine, remote, executors: all, launchers, watchers, close });
  } catch (error) {
    await journal.finish('interrupted', {}).catch(() => {});
    for (const one of opened) await one.close().catch(() => {});
    throw error;
  }
}

export function findNode(graph: Graph, id: string): number {
  const node = graph.index.get(id);
  if (node === undefined) throw new CroreError('NOT_FOUND', `flow '${graph.name}' has no node '${id}'`);
  return node;
}

/** Loaded only for a store that others can join and for cached nodes, so that a small flow starts without it. */
async function openEngine(url: string): Promise<Engine> {
  const [{ Engine }, { openStore }] = await Promise.all([
    import('../../engine/engine.js'),
    import('../../store/open.js'),
  ]);
  return new Engine(await openStore(url, { timeout: 10_000 }));
}

async function openCache(graph: Graph, journal: Journal, cwd: string, force?: boolean): Promise<Cache> {
  const { Cache } = await import('../journal/cache.js');
  return Cache.open(graph, journal, cwd, force);
}

function countFailures(ends: readonly NodeEnd[]): Map<string, number> {
  const failures = new Map<string, number>();
  for (const { id, state } of ends) if (state === 'failed') failures.set(id, (failures.get(id) ?? 0) + 1);
  return failures;
}

function recorded(cache: Cache | undefined, ends: readonly NodeEnd[]): Map<string, number> {
  const seconds = cache?.seconds ?? new Map<string, number>();
  for (const end of ends) seconds.set(end.id, end.seconds);
  return seconds;
}

class NoQueue implements Executor {
  async run(task: NodeTask): Promise<NodeOutcome> {
    throw new Error(`node '${task.id}': there is no store`);
  }

  async close(): Promise<void> {}
}
