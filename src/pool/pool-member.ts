import { CroreError, Fatal, isCroreError } from '../errors.js';
import { describeError, errorLine } from '../job/attempt.js';
import { CapturedOutput, lastLines } from '../process/captured-output.js';
import { whenDrained } from '../process/drained.js';
import { EncodedResult, HandlerCrash } from '../worker/outcome.js';
import type { RunningJob } from '../worker/running.js';
import type { Channel, OpenChannel } from './channel.js';
import { compact, type HandlerEnd, type HostReply, type SentJob } from './messages.js';
import { packError, type SentError, unpackError } from './sent-error.js';

export interface MemberSetup {
  kind: 'process' | 'thread';
  /** The URL of the handler's module. */
  module: string;
  open: OpenChannel;
  killAfter: number;
}

/** How many lines of standard error are kept with a crash: those of Node about its memory are many. */
const KEPT_LINES = 50;

/** What a message and its answer take at least, in milliseconds. */
const ROUND_TRIP = 0.05;

/** The job that a member runs, and its promise. */
interface Run {
  job: RunningJob<unknown>;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

/**
 * One process or thread of a pool, and the job it runs.
 *
 *    loading ── ready ──▶ idle ◀── end ──┐
 *       │                  └─── run ──▶ busy
 *       └── unloadable, exit, kill ──▶ dead ◀── exit, kill
 */
export class PoolMember {
  dead = false;
  /** Why the module could not be loaded, once that is known. */
  unloadable: Error | undefined;
  #isReady = false;
  #isKilled = false;
  #current: Run | undefined;
  #killer: NodeJS.Timeout | undefined;
  /** What it has printed to standard error during the current job. */
  #printed = new CapturedOutput();
  readonly #channel: Channel;

  constructor(
    private readonly setup: MemberSetup,
    private readonly onDead: () => void,
  ) {
    this.#channel = setup.open({
      message: (reply) => this.#heard(reply),
      printed: (chunk) => this.#printed.add(chunk),
      ended: (how) => this.#ended(how),
    });
  }

  /** Runs a job, as soon as the module is loaded. Rejects with what the handler threw, or with a `HandlerCrash`. */
  run(job: RunningJob<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#current = { job, resolve, reject };
      job.onStop = (reason) => this.#stop(reason);
      if (this.#isReady) this.#begin(this.#current);
      else if (job.stopped) this.#stop(job.stopped);
    });
  }

  /** An idle process ends by itself, a busy one is killed. */
  end(): Promise<void> {
    this.dead = true;
    if (this.#current || !this.#isReady) this.#kill();
    else this.#channel.end();
    this.#killer ??= setTimeout(() => this.#kill(), this.setup.killAfter);
    return this.#channel.gone;
  }

  #begin(run: Run): void {
    const { job } = run;
    if (job.stopped && !isShutdown(job.stopped)) {
      this.#take()?.reject(job.stopped);
      return;
    }
    if (!this.#printed.empty) this.#printed = new CapturedOutput();
    try {
      this.#channel.send({ run: sentJob(job) });
    } catch (error) {
      this.#take()?.reject(unsendable(error));
      return;
    }
    if (job.stopped) this.#stop(job.stopped);
  }

  /** Only a shutdown has a grace time of its own, at whose end the pool is closed. */
  #stop(reason: Error): void {
    if (this.#isReady) this.#channel.send({ stop: packError(reason) });
    if (!isShutdown(reason)) this.#killer ??= setTimeout(() => this.#kill(), this.setup.killAfter);
  }

  #kill(): void {
    this.dead = true;
    this.#isKilled = true;
    this.#channel.kill();
  }

  #heard(reply: HostReply): void {
    if ('ready' in reply) {
      this.#isReady = true;
      if (this.#current) this.#begin(this.#current);
    } else if ('unloadable' in reply) {
      this.#notLoaded(errorLine(describeError(unpackError(reply.unloadable))), reply.unloadable);
    } else if ('note' in reply) {
      void this.#write(reply);
    } else if ('end' in reply) {
      this.#finish(reply.end);
    }
  }

  async #write({ note, update }: Extract<HostReply, { note: number }>): Promise<void> {
    try {
      await this.#current?.job.write(update);
      this.#channel.send({ written: note, held: true });
    } catch (error) {
      const held = isCroreError(error) && error.code === 'LEASE_LOST' ? { held: false } : { failed: packError(error) };
      this.#channel.send({ written: note, ...held });
    }
  }

  #finish({ took = 0, result, unencodable, thrown, snoozed, released }: HandlerEnd): void {
    const run = this.#take();
    if (!run) return;
    const { job } = run;
    // Not the time until the answer was read: a commit before that would make every handler look slow, and claims small.
    job.took = Math.max(took, ROUND_TRIP);
    job.snoozed = snoozed;
    job.released = released ?? false;
    if (thrown) run.reject(unpackError(thrown, job.stopped));
    else if (unencodable) run.resolve(new EncodedResult(unpackError(unencodable) as Error));
    else run.resolve(result === undefined ? undefined : new EncodedResult(result));
  }

  #notLoaded(why: string, error?: SentError): void {
    const { module } = this.setup;
    const cause = error && unpackError(error);
    this.unloadable = new CroreError('WORKER_FAILED', `cannot load the handler module ${module}: ${why}`, { cause });
    this.#kill();
    this.#take()?.reject(this.unloadable);
  }

  #ended(how: string): void {
    this.dead = true;
    // The end of what it printed may still be on its way.
    whenDrained(() => {
      if (!this.#isReady && !this.#isKilled) this.#notLoaded(this.#deathOf(how));
      const run = this.#take();
      run?.reject(this.#isKilled ? run.job.stopped : this.#crash(how));
    });
    this.onDead();
  }

  #crash(how: string): HandlerCrash {
    return new HandlerCrash(this.#deathOf(how), lastLines(this.#printed.text, KEPT_LINES));
  }

  #deathOf(how: string): string {
    return `the ${this.setup.kind} of its handler died (${how})`;
  }

  #take(): Run | undefined {
    clearTimeout(this.#killer);
    this.#killer = undefined;
    const run = this.#current;
    this.#current = undefined;
    if (run) run.job.onStop = undefined;
    return run;
  }
}

function isShutdown(reason: Error): boolean {
  return isCroreError(reason) && reason.code === 'CLOSED';
}

function sentJob(job: RunningJob<unknown>): SentJob {
  const { queue, lease, id, attempt, maxAttempts, crashes, headers } = job;
  return { queue, lease, id, payload: compact(job.payload), attempt, maxAttempts, crashes, headers };
}

/** Only what a schema made of a payload may be unfit for a message; it would be so again on a retry. */
function unsendable(error: unknown): unknown {
  if (!(error instanceof Error) || error.name === 'Fatal') return error;
  return new Fatal(`the payload cannot be sent to the handler: ${error.message}`, { cause: error });
}
