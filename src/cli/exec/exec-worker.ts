import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { oncePerOutage } from '../../engine/logging/outage-filter.js';
import { ERRORS, isCroreError } from '../../errors.js';
import type { ActiveJob, Crore, Queue, Worker, WorkOptions } from '../../index.js';
import { OrphanGuard } from '../../process/orphan-guard.js';
import { printable } from '../output.js';
import { CannotStart, ChildJob, type ChildJobSettings, planChildJob, type Report } from './child-job.js';

export interface ExecWorkerSettings extends ChildJobSettings {
  queue: string;
  /** When to end: when asked to, after one job, or when nothing is ready. */
  until: 'stopped' | 'one' | 'empty';
  work: WorkOptions;
}

export interface ExecWorkerEvents {
  /** Called when a run for a job has ended. */
  ended: (job: ActiveJob<unknown>, report: Report) => void;
  /** Called for errors that are not the fault of a job. */
  warn: (text: string) => void;
}

/** Interval between checks whether the queue is empty. */
const LOOK = 100;
/** A job due within this time counts as ready: the store's clock may differ slightly from ours. */
const SOON = 500;
/** Added to the grace time before the library returns jobs: children are dead by then, so nobody gets a job that still runs. */
const MARGIN = 10_000;

/** Works on a queue with one executable, until it is asked to stop or nothing is left to do. */
export class ExecWorker {
  readonly #queue: Queue;
  readonly #guard: OrphanGuard;
  readonly #mark = randomBytes(20).toString('hex');
  readonly #childJobs = new Set<ChildJob>();
  readonly #stopped: Promise<void>;
  #worker: Worker<unknown> | undefined;
  #stop!: () => void;
  #stopping = false;
  #taken = 0;
  #code = 0;

  constructor(
    crore: Crore,
    private readonly settings: ExecWorkerSettings,
    private readonly events: ExecWorkerEvents,
  ) {
    this.#queue = crore.queue(settings.queue);
    this.#guard = new OrphanGuard(spawn, this.#mark, events.warn);
    this.#stopped = new Promise((resolve) => {
      this.#stop = resolve;
    });
  }

  readonly #warn = oncePerOutage((error, what) => {
    const isOutage = isCroreError(error) && error.code === 'STORE_UNREACHABLE';
    this.events.warn(isOutage ? error.message : `${what}: ${error.message}`);
  });

  /** A store that is gone does not come back: the worker ends with its error's exit code. */
  #onError(error: Error, what: string): void {
    this.#warn(error, what);
    if (!isCroreError(error) || error.code !== 'STORE_GONE') return;
    this.#code = ERRORS.STORE_GONE.exit;
    this.#stop();
  }

  /** Resolves with the exit code when all children are gone and their jobs are settled or returned. */
  async run(): Promise<number> {
    const { work, grace } = this.settings;
    const worker = this.#queue.work((job) => this.#serve(job), {
      ...work,
      grace: grace + MARGIN,
      onError: (error, what) => this.#onError(error, what),
    });
    this.#worker = worker;
    if (this.settings.until !== 'stopped') void this.#watchForEnd(worker);
    await this.#stopped;
    await worker.close();
    this.#guard.close();
    return this.#code;
  }

  /** Claims nothing more, asks the children to end, and kills them after the grace time. */
  stop(code: number): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#code = code;
    void this.#worker?.close();
    for (const childJob of this.#childJobs) childJob.stop();
    this.#stop();
  }

  signalChildren(name: NodeJS.Signals): void {
    for (const childJob of this.#childJobs) childJob.signalGroup(name);
  }

  async #serve(job: ActiveJob<unknown>): Promise<unknown> {
    if (this.#stopping || (this.settings.until === 'one' && this.#taken > 0)) return job.release() as unknown;
    this.#taken += 1;
    try {
      const childJob = this.#begin(job);
      this.#childJobs.add(childJob);
      return await childJob
        .run((report) => this.events.ended(job, report))
        .finally(() => this.#childJobs.delete(childJob));
    } catch (error) {
      if (!(error instanceof CannotStart)) throw error;
      this.events.warn(error.message);
      this.stop(1);
    } finally {
      if (this.settings.until === 'one') this.stop(this.#code);
    }
  }

  #begin(job: ActiveJob<unknown>): ChildJob {
    try {
      return new ChildJob(job, this.settings, planChildJob(job, this.settings, this.#mark), this.#guard);
    } catch (error) {
      this.events.warn(`${job.isTask ? 'task' : printable(job.id)}: dead: ${(error as Error).message}`);
      throw error;
    }
  }

  async #watchForEnd(worker: Worker<unknown>): Promise<void> {
    await worker.ready();
    while (!this.#stopping) {
      if (this.#childJobs.size === 0 && (await this.#isEmpty().catch(() => false))) this.stop(0);
      else await new Promise((resolve) => setTimeout(resolve, LOOK));
    }
  }

  /**
   * Whether nothing is left to do here. A job may change its state between two checks, so the order matters: we hold nothing,
   * nothing is due, nothing is ready, we still hold nothing, and nothing has started meanwhile. A job seen in none of these came
   * later or is held by another worker.
   */
  async #isEmpty(): Promise<boolean> {
    const taken = this.#taken;
    if ((await this.#holds()) || (await this.#hasWork()) || (await this.#holds())) return false;
    return taken === this.#taken && this.#childJobs.size === 0;
  }

  async #holds(): Promise<boolean> {
    const workers = await this.#queue.workers();
    return workers.some(({ id, holds }) => id === this.#worker?.id && holds > 0);
  }

  async #hasWork(): Promise<boolean> {
    if (await this.#queue.isPaused()) return false; // a paused queue delivers nothing, perhaps never again
    const { jobs } = await this.#queue.list('scheduled', { limit: 1 });
    if (jobs.some(({ runAt }) => runAt !== undefined && runAt <= Date.now() + SOON)) return true;
    return (await this.#queue.count()).ready > 0;
  }
}
