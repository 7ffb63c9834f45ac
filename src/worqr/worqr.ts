import { EventEmitter } from 'node:events';
import { checkName } from '../engine/input/check.js';
import { CroreError } from '../errors.js';
import type { Bytes } from '../job/job.js';
import { EventBridge } from './event-bridge.js';
import { parseProcessId, processId } from './names.js';
import {
  type ResolvedOptions,
  resolveOptions,
  sweepPolicyOf,
  type WorqrOptions,
  type WorqrRedisOptions,
} from './options.js';
import { type OpenConnection, StoreConnection } from './store-connection.js';
import { Supervisor } from './supervisor.js';
import { fromBytes, type Process, toBytes, toGroup, toResult } from './tasks.js';
import { WorqrSession } from './worker-session.js';

/** The data of a `debug` event. */
export interface DebugInfo {
  workerId: string;
  started: boolean;
  queues: { queue: string; waiting: number; processes: number }[];
}

/** Milliseconds between checks of idle queues: a missed message delays work no longer than this. */
const SLOW_POLL = 5_000;

/**
 * Plain tasks in plain queues, which the application dequeues and finishes itself. `on(queue, (type, message) => …)`
 * receives `work` (how many; only while this instance works on the queue), `done` (JSON of workerId, task and result),
 * `cancel` (the task) and `delete`; `error` and `debug` are events of the instance.
 */
export class Worqr<Task extends string | Buffer = string> extends EventEmitter {
  readonly #options: ResolvedOptions;
  readonly #link: StoreConnection;
  readonly #bridge: EventBridge;
  readonly #supervisor: Supervisor;
  /** Timers of a started worker. */
  readonly #duties: NodeJS.Timeout[] = [];
  #debugTimer: NodeJS.Timeout | undefined;
  #session: WorqrSession | undefined;
  #starting: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(redis: string | WorqrRedisOptions, options: WorqrOptions = {}) {
    super();
    this.#options = resolveOptions(redis, options);
    const { open, timeout, binary, debug } = this.#options;
    this.#link = new StoreConnection(
      open,
      timeout,
      (error, what) => this.#bridge.reportError(error, what),
      (queue, tokens) => this.#session?.queueSessions.get(queue)?.forget(tokens),
    );
    this.#supervisor = new Supervisor(() => this.#link.connection(), sweepPolicyOf(this.#options));
    this.#bridge = new EventBridge({
      emitter: this,
      link: this.#link,
      timeout,
      binary,
      isWorking: (queue) => this.#session?.queueSessions.has(queue) === true,
      look: (queue) => this.#attempt(`checking queue '${queue}'`, () => this.requestWork(queue)),
    });
    if (debug !== undefined) this.#debugTimer = this.#every(debug, 'debug', () => this.#debug()).unref();
  }

  /**
   * Adds one task, or an array of them as a whole, at the back. Unique: refused while an equal unique task waits or is
   * in process.
   */
  enqueue(queue: string, task: string | Bytes | readonly (string | Bytes)[], unique = false): Promise<void> {
    return this.#call(() => {
      const group = { tasks: toGroup(task), unique: unique === true };
      return (
        this.#ready(queue)?.calls.enqueue(queue, group) ?? this.#at(queue).then((at) => at.calls.enqueue(queue, group))
      );
    });
  }

  /** Names of the queues with waiting tasks. */
  async getQueues(): Promise<string[]> {
    const { store } = await this.#link.connection();
    const names = await store.queues();
    const counts = await Promise.all(names.map((name) => store.raw.count(name)));
    return names.filter((_name, i) => counts[i]! > 0);
  }

  /** The next task, or null. */
  async peekQueue(queue: string): Promise<Task | null> {
    const { store } = await this.#at(queue);
    const task = await store.raw.peek(queue);
    return task === undefined ? null : this.#task(task);
  }

  async countQueue(queue: string): Promise<number> {
    const { store } = await this.#at(queue);
    return store.raw.count(queue);
  }

  /** Every waiting task, next one first. O(n). */
  async getTasks(queue: string): Promise<Task[]> {
    const { store } = await this.#at(queue);
    return (await store.raw.tasks(queue)).map((task) => this.#task(task));
  }

  /** Removes the waiting tasks; tasks in process stay. */
  async deleteQueue(queue: string): Promise<void> {
    const { store } = await this.#at(queue);
    await store.raw.clear(queue);
  }

  /** Removes every waiting instance of a task, and notifies workers that have one in process. O(n). */
  async cancelTasks(queue: string, task: string | Bytes): Promise<void> {
    const bytes = toBytes(task);
    const { store } = await this.#at(queue);
    await store.raw.remove(queue, bytes);
  }

  /** Starts this worker; required before it can work, and again after it was lost or failed. */
  startWorker(): Promise<void> {
    if (this.#session) return Promise.resolve();
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  getWorkerId(): string {
    return this.#options.workerId;
  }

  /** Ids of the live workers. */
  async getWorkers(): Promise<string[]> {
    return [...new Set((await this.#supervisor.living()).map(({ workerId }) => workerId))];
  }

  /** Queues that a worker, by default this one, works on. */
  async getWorkingQueues(workerId: string = this.#options.workerId): Promise<string[]> {
    const workers = (await this.#supervisor.living()).filter((worker) => worker.workerId === workerId);
    return [...new Set(workers.flatMap(({ queues }) => Object.keys(queues)))];
  }

  /** Starts to work on a queue: `work` events arrive, and `dequeue` is allowed. */
  async startWork(queue: string): Promise<void> {
    checkName(queue, 'queue name');
    const session = this.#started('startWork');
    await this.#bridge.open(queue);
    await session.work(queue);
    await this.requestWork(queue);
  }

  /** Emits `work` on this instance if tasks wait. */
  async requestWork(queue: string): Promise<void> {
    const { store } = await this.#at(queue);
    const count = await store.raw.count(queue, true);
    if (count > 0) this.#bridge.work(queue, count);
  }

  /** Stops working on a queue; the tasks that this worker has in process there return to the front. */
  async stopWork(queue: string): Promise<void> {
    await this.#at(queue);
    await this.#session?.stop(queue);
    this.#bridge.release(queue);
  }

  /** The next task as a process of this worker, or null if none waits. Concurrent calls are sent as a batch. */
  dequeue(queue: string): Promise<Process<Task> | null> {
    return this.#call(() => {
      checkName(queue, 'queue name');
      return this.#started('dequeue').queueSession(queue).take() as Promise<Process<Task> | null>;
    });
  }

  /** Finishes a process: its task is removed for good, and listeners get `done` with the result. */
  finishProcess(id: string, result?: unknown): Promise<void> {
    return this.#call(() => {
      const { token, queue } = parseProcessId(id);
      const json = toResult(result);
      const end = json === undefined ? { token } : { token, result: json };
      return this.#ready(queue)?.calls.finish(queue, end) ?? this.#at(queue).then((at) => at.calls.finish(queue, end));
    });
  }

  /** Gives up a process: its task returns to the front of its queue. */
  async stopProcess(id: string): Promise<void> {
    const { token, queue } = parseProcessId(id);
    const { calls } = await this.#at(queue);
    await calls.giveBack(queue, token);
  }

  /** Ids of all processes with this task, in every queue. O(number of tasks in process). */
  async getMatchingProcesses(task: string | Bytes): Promise<string[]> {
    const bytes = toBytes(task);
    const { store } = await this.#link.connection();
    const matching = async (queue: string) =>
      (await store.raw.findLeased(queue, bytes)).map((token) => processId(queue, token));
    return (await Promise.all((await store.queues()).map(matching))).flat();
  }

  /** Ends a worker, by default this one: all its tasks in process return to the front of their queues. */
  async failWorker(workerId: string = this.#options.workerId): Promise<void> {
    checkName(workerId, 'workerId');
    await this.#link.connection();
    // Our own worker is identified by its session, not just its name: one that is started in the meantime is not
    // affected.
    if (workerId === this.#options.workerId && this.#session) await this.#detach()?.end();
    else await this.#supervisor.fail(workerId);
  }

  /** Returns the work of all workers whose lease has ended. */
  cleanupWorkers(): Promise<void> {
    return this.#supervisor.cleanup();
  }

  /** Ends this worker if it was started, stops every timer, and closes the connections that this instance opened. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #start(): Promise<void> {
    const connection = await this.#link.connection();
    const session = new WorqrSession({
      connection,
      options: this.#options,
      supervisor: this.#supervisor,
      policy: sweepPolicyOf(this.#options),
      lost: (error) => {
        if (this.#session === session) this.#detach();
        this.#bridge.reportError(error, 'worker');
      },
      reportError: (error, what) => this.#bridge.reportError(error, what),
    });
    await session.start();
    if (session.isOver) return;
    this.#session = session;
    const { cleanup, heartbeatEvery: beat } = this.#options;
    this.#duties.push(
      // The only timer that keeps a process alive: a worker waits for work.
      this.#every(SLOW_POLL, 'checking for tasks', () => this.#poll()),
      this.#every(cleanup, 'cleanup', () => this.#supervisor.cleanup()).unref(),
      this.#every(beat, 'heartbeat', () => session.beat()).unref(),
    );
    this.#attempt('cleanup', () => this.#supervisor.cleanup());
  }

  async #close(): Promise<void> {
    await this.#starting?.catch(() => {});
    await this.#detach()
      ?.end()
      .catch((error: Error) => this.#bridge.reportError(error, 'closing'));
    clearInterval(this.#debugTimer);
    this.#bridge.close();
    await this.#link.close();
  }

  /** Detaches the started worker and returns it, if there was one. */
  #detach(): WorqrSession | undefined {
    const session = this.#session;
    this.#session = undefined;
    for (const timer of this.#duties.splice(0)) clearInterval(timer);
    return session;
  }

  /** The store, if the call need not wait for anything. */
  #ready(queue: string): OpenConnection | undefined {
    checkName(queue, 'queue name');
    return this.#bridge.settled(queue) ? undefined : this.#link.opened;
  }

  /** The store, once no event of this queue that this instance needs can be missed. */
  async #at(queue: string): Promise<OpenConnection> {
    checkName(queue, 'queue name');
    for (let on = this.#bridge.settled(queue); on; on = this.#bridge.settled(queue)) await on;
    return this.#link.connection();
  }

  #started(verb: string): WorqrSession {
    if (this.#closing) throw new CroreError('CLOSED', 'this Worqr has been closed');
    if (this.#session) return this.#session;
    throw new CroreError('NOT_STARTED', `${verb}: the worker is not started, call startWorker first`);
  }

  #task(bytes: Bytes): Task {
    return fromBytes(bytes, this.#options.binary) as Task;
  }

  /** For frequent calls: turns an error into a rejection, and creates no promise besides that of the batch. */
  #call<T>(verb: () => Promise<T>): Promise<T> {
    try {
      return verb();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #poll(): Promise<void> {
    for (const [queue, queueSession] of [...(this.#session?.queueSessions ?? [])]) {
      if (await queueSession.isIdle()) await this.requestWork(queue);
    }
  }

  async #debug(): Promise<void> {
    if (this.listenerCount('debug') === 0) return;
    const { store } = await this.#link.connection();
    const queues = [...(this.#session?.queueSessions ?? [])].map(async ([queue, { inHand }]) => ({
      queue,
      waiting: await store.raw.count(queue),
      processes: inHand.size,
    }));
    const started = this.#session !== undefined;
    const info: DebugInfo = { workerId: this.#options.workerId, started, queues: await Promise.all(queues) };
    this.emit('debug', info);
  }

  /** Runs a function periodically, never twice at once. */
  #every(ms: number, what: string, run: () => Promise<void>): NodeJS.Timeout {
    let running = false;
    return setInterval(() => {
      if (running || this.#closing) return;
      running = true;
      this.#attempt(what, () =>
        run().finally(() => {
          running = false;
        }),
      );
    }, ms);
  }

  /** Runs a function that no caller waits for. */
  #attempt(what: string, run: () => Promise<void>): void {
    run().catch((error: Error) => {
      if (!this.#closing) this.#bridge.reportError(error, what);
    });
  }
}
