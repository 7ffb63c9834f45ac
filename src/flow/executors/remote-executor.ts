import type { Engine } from '../../engine/engine.js';
import type { Job } from '../../job/job.js';
import { contextOf, contextVariables } from '../../job/trace-context.js';
import type { Executor, NodeOutcome, NodeTask } from './executor.js';
import { resultOf, runJob } from './queue-job.js';

/** What a worker receives: everything about one attempt. */
export interface RemoteTask {
  id: string;
  attempt: number;
  run?: string | readonly string[];
  /** The module that exports the function. */
  module?: string;
  node?: string;
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  /** Milliseconds the attempt may take. */
  timeout?: number;
  needs?: Record<string, unknown>;
  part?: number;
  item?: unknown;
}

/** The queue that a flow's workers serve. */
export const queueOf = (flow: string): string => `flow:${flow}`;

/** How often the runner counts the workers, in milliseconds. */
const LOOK = 250;
const SWEEP_POLICY = { lease: 10_000, sweep: 1_000, maxCrashes: 3 };

export interface RemoteExecutorOptions {
  engine: Engine;
  flow: string;
  env: Readonly<Record<string, string>>;
  cwd: string;
  module?: string;
  rounds: ReadonlyMap<string, number>;
}

/**
 * Runs nodes on workers that have joined, on this or other machines: as many as they have slots for, and some in
 * advance.
 */
export class RemoteExecutor implements Executor {
  readonly keepsTime = true;
  onRoom: () => void = () => {};
  /** Slots of all live workers. */
  slots = 0;
  /** Whether a worker has ever joined. */
  seen = false;
  readonly #queue: string;
  readonly #offered = new Map<string, NodeTask>();
  readonly #versions = new Map<string, number>();
  /** Stops the sweep of the queue, which starts with the first worker: a flow without workers leaves no queue behind. */
  #unwatch: (() => void) | undefined;
  readonly #timer: NodeJS.Timeout;
  #closed = false;

  constructor(private readonly options: RemoteExecutorOptions) {
    this.#queue = queueOf(options.flow);
    this.#timer = setInterval(() => void this.look().catch(() => {}), LOOK);
  }

  get room(): number {
    return Math.ceil(this.slots * 1.5) - this.#offered.size;
  }

  /** Counts the workers; when the last one has left, cancels the jobs that none of them runs. */
  async look(): Promise<void> {
    const { engine } = this.options;
    const now = engine.store.now();
    const workers = (await engine.store.workers(this.#queue)).filter(({ deadline }) => deadline > now);
    if (this.#closed) return;
    this.slots = workers.reduce((sum, { info }) => sum + (JSON.parse(info) as { concurrency: number }).concurrency, 0);
    this.seen ||= this.slots > 0;
    if (this.seen) this.#unwatch ??= engine.maintenance.watch(this.#queue, SWEEP_POLICY);
    if (this.slots === 0 && this.#offered.size > 0) await engine.store.cancel(this.#queue, [...this.#offered.keys()]);
    if (this.room > 0) this.onRoom();
  }

  async run(task: NodeTask): Promise<NodeOutcome> {
    for (;;) {
      const id = this.#idOf(task);
      this.#offered.set(id, task);
      task.stop = () => void this.options.engine.store.cancel(this.#queue, [id]).catch(() => {});
      const job = await runJob(this.options.engine, this.#queue, this.#remoteTask(task), {
        id,
        attempts: 1,
        priority: task.spec.options.priority,
        keep: { for: '1d', count: 100_000 },
        keepDead: { for: '1d', count: 100_000 },
      }).finally(() => this.#offered.delete(id));
      if (job?.state === 'done') return resultOf(job) as NodeOutcome;
      if (job?.state === 'dead') return { exit: 1, error: job.error ?? 'its worker died', fatal: true };
      if (task.stopped !== undefined) return { exit: 124, error: task.stopped };
      // Cancelled, or left over from an earlier runner: the next job needs a new id.
      this.#versions.set(task.id, (this.#versions.get(task.id) ?? 0) + 1);
      if (!leftover(job, task)) return { exit: 0, returned: true };
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#unwatch?.();
  }

  #idOf({ id, attempt }: NodeTask): string {
    return `${id}~${this.options.rounds.get(id) ?? 0}.${this.#versions.get(id) ?? 0}.${attempt}`;
  }

  #remoteTask({ id, spec, attempt, needs, part, item, node: _ }: NodeTask): RemoteTask {
    const { env, cwd, module } = this.options;
    const { work, options } = spec;
    const trace = contextVariables({ ...contextOf(process.env) });
    const remote: RemoteTask = { id, attempt, env: { ...trace, ...env, ...options.env }, cwd: options.cwd ?? cwd };
    if (options.timeout > 0) remote.timeout = options.timeout;
    if (needs) remote.needs = needs;
    if (part !== undefined) Object.assign(remote, { part, item });
    if (work.kind === 'shell') remote.run = work.run;
    else Object.assign(remote, { module, node: part === undefined ? id : id.slice(0, id.lastIndexOf('[')) });
    return remote;
  }
}

function leftover(job: Job | undefined, task: NodeTask): boolean {
  return job !== undefined && job.createdAt < task.startedAt - 1_000;
}
