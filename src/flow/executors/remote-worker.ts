import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { isCroreError } from '../../errors.js';
import { type Crore, open, type Queue, type Worker } from '../../index.js';
import type { NodeSpec } from '../graph/node-spec.js';
import { DEFAULT_OPTIONS } from '../graph/node-spec.js';
import { loadModule } from '../input/module.js';
import type { FlowInfo, Journal } from '../journal/journal.js';
import { openJournal } from '../journal/open.js';
import { limitTime, type NodeOutcome, type NodeTask } from './executor.js';
import { callFunction } from './in-process-executor.js';
import { queueOf, type RemoteTask } from './remote-executor.js';
import { NEVER, type Renewal } from './renewal.js';
import { ShellExecutor } from './shell-executor.js';

export interface JoinOptions {
  store: string;
  slots: number;
  /** Serve only this flow and exit with it; otherwise serve all running flows. */
  flow?: string;
  /** Milliseconds without a running flow after which the worker exits. */
  idle: number;
  /** Milliseconds without a heartbeat after which other workers take over its nodes. */
  lease: number;
  renewal?: Renewal;
  say?: (text: string) => void;
  onError?: (error: Error) => void;
}

const LOOK = 500;

/** How long running nodes may take to end by themselves when the worker is closed. */
const GRACE = 1_000;
/** By then their jobs have been returned, and what they still report is ignored. */
const AFTER_GRACE = GRACE + 500;

/**
 * A flow worker: serves the queues of all running flows until there are none left, or until it reaches its renewal
 * limit.
 */
export class FlowWorker {
  readonly #workers = new Map<string, Worker<RemoteTask>>();
  readonly #shells = new Map<string, ShellExecutor>();
  readonly #modules = new Map<string, ReturnType<typeof loadModule>>();
  readonly #host = `${hostname()}:${process.pid}`;
  readonly #born = performance.now();
  #count = 0;
  #busyAt = performance.now();
  #stopping = false;
  #wake: () => void = () => {};

  private constructor(
    private readonly options: JoinOptions,
    private readonly crore: Crore,
    private readonly journal: Journal,
  ) {}

  static async open(options: JoinOptions): Promise<FlowWorker> {
    const onError = (error: Error) => options.onError?.(error);
    const crore = await open(options.store, { onError, logger: false });
    try {
      return new FlowWorker(options, crore, await openJournal(options.store));
    } catch (error) {
      await crore.close();
      throw error;
    }
  }

  /** Works until it is stopped or there is nothing left to wait for. */
  async run(): Promise<void> {
    try {
      while (!this.#stopping && !this.#worn && (await this.#look())) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, LOOK);
          this.#wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    } finally {
      await Promise.all([...this.#workers.values()].map((worker) => worker.close()));
      for (const shells of this.#shells.values()) await shells.close();
      await this.journal.close();
      await this.crore.close();
    }
  }

  stop(): void {
    this.#stopping = true;
    this.#wake();
  }

  get #worn(): boolean {
    const { tasks, seconds, rss } = this.options.renewal ?? NEVER;
    const used = performance.now() - this.#born > seconds * 1_000 || process.memoryUsage.rss() > rss * 1_048_576;
    return this.#count >= tasks || used;
  }

  /** Joins flows that have started and leaves those that have ended; false when the worker should exit. */
  async #look(): Promise<boolean> {
    const flows = await this.#running();
    for (const { id } of flows) if (!this.#workers.has(id)) this.#join(id);
    const current = new Set(flows.map(({ id }) => id));
    for (const [id, worker] of this.#workers) {
      if (current.has(id)) continue;
      this.#workers.delete(id);
      await worker.close();
      await this.#shells.get(id)?.close();
      this.#shells.delete(id);
      this.options.say?.(`left ${id}`);
      if (id === this.options.flow) return false;
    }
    if (flows.length > 0) this.#busyAt = performance.now();
    return performance.now() - this.#busyAt <= this.options.idle;
  }

  async #running(): Promise<FlowInfo[]> {
    const { flow } = this.options;
    const all = flow === undefined ? await this.journal.list() : [await this.journal.get(flow)];
    const running = all.filter((info) => info?.state === 'running') as FlowInfo[];
    const held = await Promise.all(running.map(({ id }) => this.journal.isHeld(id)));
    return running.filter((_info, i) => held[i]);
  }

  #join(id: string): void {
    const queue: Queue<RemoteTask, NodeOutcome> = this.crore.queue(queueOf(id));
    const onError = (error: Error) => this.options.onError?.(error);
    const worker = queue.work((job) => this.#do(id, job.payload, job.signal), {
      concurrency: this.options.slots,
      grace: GRACE,
      lease: this.options.lease,
      heartbeat: this.options.lease / 4,
      sweep: Math.min(1_000, this.options.lease / 3),
      onError,
    });
    this.#workers.set(id, worker);
    void worker.ready().then(() => this.options.say?.(`joined ${id}`));
  }

  async #do(flow: string, remote: RemoteTask, signal: AbortSignal): Promise<NodeOutcome> {
    const began = performance.now();
    const spec: NodeSpec = {
      work: { kind: 'shell', run: remote.run ?? '' },
      options: { ...DEFAULT_OPTIONS, env: remote.env, cwd: remote.cwd, timeout: remote.timeout ?? 0 },
    };
    const { id, attempt, needs, part, item } = remote;
    const task: NodeTask = { node: 0, here: false, startedAt: Date.now(), spec, id, attempt, needs, part, item };
    const onAbort = () =>
      setTimeout(() => task.stop?.(lostReason(signal)), isShutdown(signal) ? AFTER_GRACE : 0).unref();
    signal.addEventListener('abort', onAbort, { once: true });
    limitTime(task);
    const running = remote.run === undefined ? this.#call(remote, task) : this.#command(flow, remote, task);
    const outcome = await running.finally(() => clearTimeout(task.timer));
    this.#count++;
    if (this.#worn) this.stop();
    const stopped = task.stopped === undefined ? {} : { exit: outcome.exit || 124, error: task.stopped };
    return { ...outcome, ...stopped, worker: this.#host, seconds: (performance.now() - began) / 1_000 };
  }

  async #command(flow: string, { cwd }: RemoteTask, task: NodeTask): Promise<NodeOutcome> {
    if (cwd !== undefined && !existsSync(cwd))
      return { exit: 126, fatal: true, error: `directory ${cwd} does not exist on this machine` };
    let shells = this.#shells.get(flow);
    if (!shells) {
      shells = new ShellExecutor({ flow, env: {}, cwd: process.cwd(), renewal: this.options.renewal ?? NEVER });
      this.#shells.set(flow, shells);
    }
    return shells.run(task);
  }

  async #call({ module, node }: RemoteTask, task: NodeTask): Promise<NodeOutcome> {
    if (module === undefined || node === undefined)
      return { exit: 1, fatal: true, error: 'this flow has functions that only its runner can call' };
    const loading = this.#modules.get(module) ?? loadModule(module);
    this.#modules.set(module, loading);
    const graph = await loading;
    const work = graph.specs[graph.index.get(node) ?? -1]?.work;
    if (work?.kind !== 'function')
      return { exit: 1, fatal: true, error: `${module} has no function for node '${node}'` };
    return callFunction(work.call, task);
  }
}

function isShutdown({ reason }: AbortSignal): boolean {
  return isCroreError(reason) && reason.code === 'CLOSED';
}

function lostReason(signal: AbortSignal): string {
  return isShutdown(signal) ? 'the worker was closed' : 'the lease of the job was lost';
}
