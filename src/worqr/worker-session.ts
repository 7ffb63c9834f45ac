import { hostname } from 'node:os';
import type { SweepPolicy } from '../engine/maintenance.js';
import { CroreError } from '../errors.js';
import { WORKER_REGISTRY } from '../store/raw-store.js';
import { Session } from '../worker/session.js';
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
  reportError: (error: Error, what: string) => void;
}

/** A started worker, from its registration to its end; it is never restarted. */
export class WorqrSession {
  readonly #setup: WorqrSessionSetup;
  /** In the worker registry. */
  readonly #registration: Session;
  readonly #queueSessions = new Map<string, QueueSession>();
  /** Names of the sessions at queues, from before they are opened until they have certainly ended. */
  readonly #sessions = new Map<string, string>();
  readonly #joining = new Map<string, Promise<void>>();
  readonly #unwatch = new Map<string, () => void>();
  #over: CroreError | undefined;
  #lastUpdate: Promise<unknown> = Promise.resolve();
  #nextUpdate: Promise<boolean> | undefined;

  constructor(setup: WorqrSessionSetup) {
    this.#setup = setup;
    this.#registration = this.#newSession(WORKER_REGISTRY);
  }

  /** Registers the worker. A permanent worker that starts again replaces the previous one of its name. */
  async start(): Promise<void> {
    const { options, supervisor } = this.#setup;
    if (options.permanent) await supervisor.fail(options.workerId);
    await this.#registration.join(this.#info(), true);
    this.#keepAlive(this.#registration);
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
    await this.#register();
  }

  /** Ends every session; all leased tasks return. */
  async end(): Promise<void> {
    if (this.#over) return;
    await Promise.allSettled(this.#joining.values());
    await this.#fail(new CroreError('NOT_STARTED', 'the worker was stopped: call startWorker to start it again'));
  }

  /**
   * Sends heartbeats from the main loop in addition to the thread, which takes time to start: a short lease cannot wait
   * for it. Also returns the tasks of claims whose replies were lost.
   */
  async beat(): Promise<void> {
    const sessions = [this.#registration, ...[...this.#queueSessions.values()].map(({ session }) => session)];
    const alive = await this.#setup.connection.store.heartbeat(sessions);
    const ours = (session: Session) =>
      session === this.#registration || this.#queueSessions.get(session.queue)?.session === session;
    if (alive.some((one, i) => !one && ours(sessions[i]!))) this.#lose();
    for (const queueSession of [...this.#queueSessions.values()]) await queueSession.returnUncertainClaims();
  }

  async #join(queue: string): Promise<void> {
    const { connection, options, policy, supervisor } = this.#setup;
    await this.#endSession(queue); // a session that a failed call may have left
    const session = this.#newSession(queue);
    this.#sessions.set(queue, session.worker);
    // To return the work of a dead worker, others must find its queues in the worker registry: so register them first.
    if (!(await this.#register())) throw this.#lose();
    await session.join(this.#info(), true);
    if (this.#over) {
      await supervisor.failSession(queue, session.worker);
      throw this.#over;
    }
    this.#queueSessions.set(queue, new QueueSession(connection.store, session, options.binary, () => this.#lose()));
    this.#unwatch.set(queue, connection.engine.maintenance.watch(queue, policy));
    this.#keepAlive(session);
  }

  #newSession(queue: string): Session {
    const { connection, options } = this.#setup;
    return new Session(connection.store, queue, sessionName(options.workerId), options.lease);
  }

  /**
   * Updates this worker's queues in the worker registry; false if it is gone from there. One update at a time: of two
   * on different connections, the earlier one could arrive last and lose a queue. Calls that wait share the next one.
   */
  #register(): Promise<boolean> {
    if (this.#nextUpdate) return this.#nextUpdate;
    const { queue, worker } = this.#registration;
    const update = this.#lastUpdate.then(() => {
      this.#nextUpdate = undefined;
      return this.#setup.connection.store.raw.updateSession(queue, worker, JSON.stringify(this.#info()));
    });
    this.#nextUpdate = update;
    this.#lastUpdate = update.catch(() => false);
    return update;
  }

  #keepAlive(session: Session): void {
    const { connection, options, reportError } = this.#setup;
    const late = new CroreError('STORE_UNREACHABLE', 'no heartbeat reaches the store and the lease is about to end');
    session.keepAlive(
      connection.heartbeat,
      { heartbeatMs: options.heartbeatEvery, hung: HUNG },
      {
        lost: () => void this.#lose(),
        late: (recovered) => recovered || reportError(late, `worker '${options.workerId}'`),
      },
    );
  }

  /** Other workers have declared this worker dead: drops its processes. Returns the error for callers. */
  #lose(): CroreError {
    if (this.#over) return this.#over;
    const { options, lost, reportError } = this.#setup;
    const why = 'its heartbeat was too late, or another instance failed it; its tasks are back in their queues';
    const error = new CroreError(
      'NOT_STARTED',
      `worker '${options.workerId}' was lost: ${why}. Call startWorker again`,
    );
    this.#fail(error).catch((failure: Error) => reportError(failure, `returning the tasks of '${options.workerId}'`));
    lost(error);
    return error;
  }

  async #fail(reason: CroreError): Promise<void> {
    this.#over = reason;
    for (const queue of [...this.#queueSessions.keys()]) this.#leave(queue);
    this.#registration.stopHeartbeat();
    await this.#setup.supervisor.failSessions(this.#registration.worker, [...this.#sessions]);
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
    queueSession.session.stopHeartbeat();
  }

  #info(): object {
    return { host: hostname(), pid: process.pid, queues: Object.fromEntries(this.#sessions) };
  }
}
