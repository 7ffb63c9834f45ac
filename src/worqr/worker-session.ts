import { hostname } from 'node:os';
import type { SweepPolicy } from '../engine/maintenance.js';
import { CroreError } from '../errors.js';
import { WORKER_REGISTRY } from '../store/raw-store.js';
import type { WorkerSession } from '../store/store.js';
import { sessionName } from './names.js';
import type { ResolvedOptions } from './options.js';
import { QueueSession } from './queue-session.js';
import type { OpenConnection } from './store-connection.js';
import type { Supervisor } from './supervisor.js';

/** A main loop that stands still for this long counts as hung, and its worker as dead. */
const HUNG = 60_000;

export interface WorqrSessionSetup {
  connection: OpenConnection;
  options: ResolvedOptions;
  supervisor: Supervisor;
  policy: SweepPolicy;
  /** Told once, when the worker was declared dead by others. */
  lost: (error: CroreError) => void;
  /** Told of trouble that no caller could be told of. */
  trouble: (error: Error, what: string) => void;
}

/** A started worker, from its place on the roll to its end: one life, never taken up again. */
export class WorqrSession {
  readonly #setup: WorqrSessionSetup;
  readonly #name: string;
  readonly #queueSessions = new Map<string, QueueSession>();
  /** Names of the sessions at queues, from before they are opened until they are surely ended. */
  readonly #sessions = new Map<string, string>();
  readonly #joining = new Map<string, Promise<void>>();
  readonly #unwatch = new Map<string, () => void>();
  #over: CroreError | undefined;

  constructor(setup: WorqrSessionSetup) {
    this.#setup = setup;
    this.#name = sessionName(setup.options.workerId);
  }

  /** Takes a place on the roll. A permanent worker that starts again takes over from whoever had its name. */
  async start(): Promise<void> {
    const { connection, options, supervisor } = this.#setup;
    if (options.permanent) await supervisor.fail(options.workerId);
    await connection.store.join(WORKER_REGISTRY, this.#name, { lease: options.lease, info: this.#info(), raw: true });
    this.#beat(WORKER_REGISTRY, this.#name);
  }

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  get queueSessions(): ReadonlyMap<string, QueueSession> {
    return this.#queueSessions;
  }

  queueSession(queue: string): QueueSession {
    if (this.#over) throw this.#over;
    const queueSession = this.#queueSessions.get(queue);
    if (!queueSession)
      throw new CroreError('NOT_WORKING', `the worker does not work on queue '${queue}': call startWork first`);
    return queueSession;
  }

  /** Opens a session at a queue. */
  work(queue: string): Promise<void> {
    if (this.#queueSessions.has(queue)) return Promise.resolve();
    const known = this.#joining.get(queue);
    if (known) return known;
    const joining = this.#join(queue).finally(() => this.#joining.delete(queue));
    this.#joining.set(queue, joining);
    return joining;
  }

  /** Ends the session at a queue; what it holds goes back to the front. */
  async stop(queue: string): Promise<void> {
    await this.#joining.get(queue)?.catch(() => {});
    if (this.#over) return;
    this.#leave(queue);
    await this.#endSession(queue);
    await this.#setup.connection.store.raw.updateSession(WORKER_REGISTRY, this.#name, this.#info());
  }

  /** Ends every session; all that is held goes back. */
  async end(): Promise<void> {
    if (this.#over) return;
    await Promise.allSettled(this.#joining.values());
    await this.#fail(new CroreError('NOT_STARTED', 'the worker was ended: call startWorker to start it again'));
  }

  /**
   * Beats from the main loop, beside the thread: that takes its time to start, and a short lease may not wait for it. Also
   * cares for answers that were lost.
   */
  async beat(): Promise<void> {
    const { connection, options } = this.#setup;
    const { lease } = options;
    const sessions = [
      { queue: WORKER_REGISTRY, worker: this.#name, lease },
      ...[...this.#queueSessions.values()].map((queueSession) => queueSession.session),
    ];
    const alive = await connection.store.heartbeat(sessions);
    const ours = ({ queue, worker }: WorkerSession) =>
      queue === WORKER_REGISTRY || this.#queueSessions.get(queue)?.session.worker === worker;
    if (alive.some((one, i) => !one && ours(sessions[i]!))) this.#lose();
    for (const queueSession of [...this.#queueSessions.values()]) await queueSession.settleDoubts();
  }

  async #join(queue: string): Promise<void> {
    const { connection, options, policy, supervisor } = this.#setup;
    await this.#endSession(queue); // one that a failed call may have left
    const session = { queue, worker: sessionName(options.workerId), lease: options.lease };
    this.#sessions.set(queue, session.worker);
    // Whoever looks for the work of a dead worker must find its queues on the roll: so they stand there first.
    if (!(await connection.store.raw.updateSession(WORKER_REGISTRY, this.#name, this.#info()))) throw this.#lose();
    await connection.store.join(queue, session.worker, { lease: options.lease, info: this.#info(), raw: true });
    if (this.#over) {
      await supervisor.failSession(queue, session.worker);
      throw this.#over;
    }
    this.#queueSessions.set(queue, new QueueSession(connection.store, session, options.binary, () => this.#lose()));
    this.#unwatch.set(queue, connection.engine.maintenance.watch(queue, policy));
    this.#beat(queue, session.worker);
  }

  #beat(queue: string, worker: string): void {
    const { connection, options, trouble } = this.#setup;
    const late = new CroreError('STORE_UNREACHABLE', 'no heartbeat gets through and the lease is about to end');
    connection.heartbeat.add(
      { queue, worker, lease: options.lease, beat: options.heartbeatEvery, hung: HUNG },
      {
        lost: () => void this.#lose(),
        late: (recovered) => recovered || trouble(late, `worker '${options.workerId}'`),
      },
    );
  }

  /** Others have declared this worker dead: it drops its processes. Returns what callers are told. */
  #lose(): CroreError {
    if (this.#over) return this.#over;
    const { options, lost, trouble } = this.#setup;
    const why = 'its heartbeat came too late or somebody failed it; its tasks are back in their queues';
    const error = new CroreError(
      'NOT_STARTED',
      `worker '${options.workerId}' was lost: ${why}. Call startWorker again`,
    );
    this.#fail(error).catch((failure: Error) => trouble(failure, `returning the work of '${options.workerId}'`));
    lost(error);
    return error;
  }

  async #fail(reason: CroreError): Promise<void> {
    this.#over = reason;
    const { connection, supervisor } = this.#setup;
    for (const queue of [...this.#queueSessions.keys()]) this.#leave(queue);
    connection.heartbeat.remove(this.#name);
    await supervisor.failSessions(this.#name, [...this.#sessions]);
  }

  async #endSession(queue: string): Promise<void> {
    const session = this.#sessions.get(queue);
    if (session === undefined) return;
    await this.#setup.supervisor.failSession(queue, session);
    if (this.#sessions.get(queue) === session) this.#sessions.delete(queue);
  }

  #leave(queue: string): void {
    const queueSession = this.#queueSessions.get(queue);
    if (!queueSession) return;
    this.#queueSessions.delete(queue);
    this.#unwatch.get(queue)?.();
    this.#unwatch.delete(queue);
    this.#setup.connection.heartbeat.remove(queueSession.session.worker);
  }

  #info(): string {
    return JSON.stringify({ host: hostname(), pid: process.pid, queues: Object.fromEntries(this.#sessions) });
  }
}
