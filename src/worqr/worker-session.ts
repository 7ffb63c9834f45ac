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

/** A main loop that is blocked for this long counts as hung, and its worker as dead. */
const HUNG = 60_000;

export interface WorqrSessionSetup {
  connection: OpenConnection;
  options: ResolvedOptions;
  supervisor: Supervisor;
  policy: SweepPolicy;
  /** Called once when other workers declare this worker dead. */
  lost: (error: CroreError) => void;
  /** Called with errors that cannot be reported to any caller. */
  trouble: (error: Error, what: string) => void;
}

/** A started worker, from its registration to its end; it is never restarted. */
export class WorqrSession {
  readonly #setup: WorqrSessionSetup;
  readonly #name: string;
  readonly #queueSessions = new Map<string, QueueSession>();
  /** Names of the sessions at queues, from before they are opened until they have certainly ended. */
  readonly #sessions = new Map<string, string>();
  readonly #joining = new Map<string, Promise<void>>();
  readonly #unwatch = new Map<string, () => void>();
  #over: CroreError | undefined;

  constructor(setup: WorqrSessionSetup) {
    this.#setup = setup;
    this.#name = sessionName(setup.options.workerId);
  }

  /** Registers the worker. A permanent worker that starts again replaces the previous one of its name. */
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

  /** Ends the session at a queue; its leased tasks return to the front. */
  async stop(queue: string): Promise<void> {
    await this.#joining.get(queue)?.catch(() => {});
    if (this.#over) return;
    this.#leave(queue);
    await this.#endSession(queue);
    await this.#setup.connection.store.raw.updateSession(WORKER_REGISTRY, this.#name, this.#info());
  }

  /** Ends every session; all leased tasks return. */
  async end(): Promise<void> {
    if (this.#over) return;
    await Promise.allSettled(this.#joining.values());
    await this.#fail(new CroreError('NOT_STARTED', 'the worker was ended: call startWorker to start it again'));
  }

  /**
   * Sends heartbeats from the main loop in addition to the thread, which takes time to start: a short lease cannot wait
   * for it. Also returns the tasks of claims whose replies were lost.
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
    await this.#endSession(queue); // a session that a failed call may have left
    const session = { queue, worker: sessionName(options.workerId), lease: options.lease };
    this.#sessions.set(queue, session.worker);
    // To return the work of a dead worker, others must find its queues in the worker registry: so register them first.
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
      { queue, worker, lease: options.lease, heartbeatMs: options.heartbeatEvery, hung: HUNG },
      {
        lost: () => void this.#lose(),
        late: (recovered) => recovered || trouble(late, `worker '${options.workerId}'`),
      },
    );
  }

  /** Other workers have declared this worker dead: drops its processes. Returns the error for callers. */
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
