import { CroreError } from '../errors.js';
import { guardProcessGroups } from '../process/group-guard.js';
import type { RunningJob } from '../worker/running.js';
import { processChannels, threadChannels } from './channel.js';
import type { ResolvedProcessOptions } from './options.js';
import { type MemberSetup, PoolMember } from './pool-member.js';

export interface HandlerPoolSetup {
  /** The URL of the handler's module. */
  module: string;
  options: ResolvedProcessOptions;
  maxPayload: number;
  onError: (error: Error, what: string) => void;
}

/** Waits before the next start after modules that could not be loaded, in milliseconds. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 10_000;

/**
 * Runs the jobs of a worker in processes or threads: one at a time in each, started on demand and reused. The worker's own
 * concurrency bounds how many there are.
 */
export class HandlerPool {
  readonly #idle: PoolMember[] = [];
  readonly #all = new Set<PoolMember>();
  readonly #guarded: ReturnType<typeof guardProcessGroups> | undefined;
  readonly #start: () => PoolMember;
  #loadFailures = 0;
  #nextStart = 0;
  #closed = false;

  constructor(private readonly setup: HandlerPoolSetup) {
    const { module, options, maxPayload } = setup;
    const { kind, killAfter, maxMemory } = options;
    const host = { module, maxPayload };
    this.#guarded = kind === 'process' ? guardProcessGroups() : undefined;
    const open = this.#guarded ? processChannels(host, maxMemory, this.#guarded) : threadChannels(host, maxMemory);
    this.#start = () => this.#add({ kind, module, open, killAfter });
  }

  async run(job: RunningJob<unknown>): Promise<unknown> {
    const member = this.#idle.pop() ?? (await this.#startFor(job));
    try {
      const result = await member.run(job);
      this.#loadFailures = 0;
      return result;
    } catch (error) {
      if (member.unloadable) this.#notLoaded(member.unloadable);
      else this.#loadFailures = 0;
      throw error;
    } finally {
      if (!member.dead) this.#idle.push(member);
    }
  }

  /** Ends all processes and threads, busy or not. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#all].map((member) => member.end()));
    this.#guarded?.guard.close();
  }

  async #startFor(job: RunningJob<unknown>): Promise<PoolMember> {
    const pause = this.#nextStart - performance.now();
    if (pause > 0) await stoppable(job, pause);
    if (job.stopped) throw job.stopped;
    if (this.#closed) throw new CroreError('CLOSED', 'the worker has been closed');
    return this.#idle.pop() ?? this.#start();
  }

  #add(setup: MemberSetup): PoolMember {
    const member = new PoolMember(setup, () => {
      this.#all.delete(member);
      const place = this.#idle.indexOf(member);
      if (place >= 0) this.#idle.splice(place, 1);
    });
    this.#all.add(member);
    return member;
  }

  /** A module that fails once will mostly fail again: the jobs fail with it, but not as fast as processes can start. */
  #notLoaded(error: Error): void {
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#loadFailures);
    this.#loadFailures = Math.min(this.#loadFailures + 1, 10);
    this.#nextStart = performance.now() + pause;
    this.setup.onError(error, 'starting a handler');
  }
}

/** A pause that ends early when the job is asked to stop. */
function stoppable(job: RunningJob<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      job.onStop = undefined;
      resolve();
    };
    const timer = setTimeout(done, ms);
    job.onStop = done;
  });
}
