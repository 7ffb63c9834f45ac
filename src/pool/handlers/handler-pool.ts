import { fileURLToPath } from 'node:url';
import { CroreError, Fatal, isCroreError } from '../../errors.js';
import { type CapturedOutput, lastLines } from '../../process/captured-output.js';
import { guardProcessGroups } from '../../process/group-guard.js';
import { EncodedResult, HandlerCrash } from '../../worker/outcome.js';
import type { RunningJob } from '../../worker/running.js';
import { Call, type Death } from '../call.js';
import { processChannels, threadChannels } from '../channel.js';
import { compact } from '../messages.js';
import type { ResolvedProcessOptions } from '../options.js';
import { Pool } from '../pool.js';
import { packError, unpackError } from '../sent-error.js';
import type {
  HandlerEnd,
  HandlerNote,
  HandlerSetup,
  NoteAnswer,
  RelativesAnswer,
  RelativesQuestion,
  SentJob,
} from './handler-messages.js';

export interface HandlerPoolSetup extends HandlerSetup {
  /** How many processes or threads there may be. */
  size: number;
  options: ResolvedProcessOptions;
  onError: (error: Error, what: string) => void;
}

/** How many lines of standard error are kept with a crash: those of Node about its memory are many. */
const KEPT_LINES = 50;

/** What a job costs at least with its messages, in milliseconds. */
const ROUND_TRIP = 0.02;

/** Runs the jobs of a worker in processes or threads. */
export class HandlerPool {
  readonly #guarded: ReturnType<typeof guardProcessGroups> | undefined;
  readonly #pool: Pool;

  constructor(private readonly setup: HandlerPoolSetup) {
    const { module, options, maxPayload, size } = setup;
    const { kind, killAfter, maxMemory } = options;
    const host: HandlerSetup = { module, maxPayload };
    this.#guarded = kind === 'process' ? guardProcessGroups() : undefined;
    const open = this.#guarded
      ? processChannels({
          program: fileURLToPath(new URL('./handler-process.js', import.meta.url)),
          args: [JSON.stringify(host)],
          guarded: this.#guarded,
          // Bytes stay bytes.
          serialization: 'advanced',
          maxMemory,
          stdout: 'inherit',
        })
      : threadChannels(new URL('./handler-thread.js', import.meta.url), host, maxMemory);
    this.#pool = new Pool({ size, open, killAfter, killLoadingAfter: killAfter });
  }

  /** How many jobs it would have if it took as many as it can now. */
  get capacity(): number {
    return this.#pool.capacity;
  }

  /** Rejects with what the handler threw, or with a `HandlerCrash`. */
  run(job: RunningJob<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = new HandlerCall(job, this.setup, resolve, reject);
      job.onStop = (reason) => this.#pool.stop(call, reason);
      this.#pool.run(call);
    });
  }

  async close(): Promise<void> {
    await this.#pool.close();
    this.#guarded?.guard.close();
  }
}

/** One job, on its way to its handler and back. */
class HandlerCall extends Call {
  constructor(
    private readonly job: RunningJob<unknown>,
    private readonly setup: HandlerPoolSetup,
    private readonly resolve: (result: unknown) => void,
    private readonly reject: (error: unknown) => void,
  ) {
    super();
  }

  get stopped(): Error | undefined {
    return this.job.stopped;
  }

  /** Only a shutdown has a grace time of its own, at whose end the pool is closed. */
  get mustStop(): boolean {
    const { stopped } = this.job;
    return stopped !== undefined && !(isCroreError(stopped) && stopped.code === 'CLOSED');
  }

  message(): SentJob {
    try {
      const { queue, lease, id, attempt, maxAttempts, crashes, headers } = this.job;
      const { needs } = this.job.spec;
      const payload = compact(this.job.payload);
      const sent = { queue, lease, id, payload, attempt, maxAttempts, crashes, headers };
      return needs === undefined ? sent : { ...sent, needs };
    } catch (error) {
      throw unsendable(error);
    }
  }

  override waits(): void {
    this.job.isSentAhead = true;
  }

  override starts(): void {
    if (!this.job.isSentAhead) return;
    this.job.isSentAhead = false;
    this.job.began = performance.now();
  }

  override async note(sent: HandlerNote | RelativesQuestion): Promise<NoteAnswer | RelativesAnswer> {
    return 'ask' in sent ? this.#relate(sent) : this.#write(sent);
  }

  async #relate({ ask, call, args }: RelativesQuestion): Promise<RelativesAnswer> {
    try {
      const make = this.job.relatives![call] as (...some: readonly unknown[]) => Promise<unknown>;
      return { asked: ask, value: await make.apply(this.job.relatives, [...args]) };
    } catch (error) {
      return { asked: ask, failed: packError(error) };
    }
  }

  async #write({ note, update }: HandlerNote): Promise<NoteAnswer> {
    try {
      await this.job.write(update);
      return { written: note, held: true };
    } catch (error) {
      if (isCroreError(error) && error.code === 'LEASE_LOST') return { written: note, held: false };
      return { written: note, failed: packError(error) };
    }
  }

  ended({ took = 0, result, unencodable, thrown, snoozed, released, awaited }: HandlerEnd): number {
    const { job } = this;
    job.onStop = undefined;
    // Not the time until the answer was read: a commit before that would make every handler look slow, and claims small.
    job.took = Math.max(took, ROUND_TRIP);
    job.snoozed = snoozed;
    job.released = released ?? false;
    job.awaited = awaited;
    if (thrown) this.reject(unpackError(thrown, job.stopped));
    else if (unencodable) this.resolve(new EncodedResult(unpackError(unencodable) as Error));
    else this.resolve(result === undefined ? undefined : new EncodedResult(result));
    return job.took;
  }

  refused(error: unknown): void {
    this.job.onStop = undefined;
    this.reject(error === this.job.stopped ? error : unsendable(error));
  }

  givenBack(): void {
    this.job.onStop = undefined;
    this.job.isSentAhead = true;
    this.job.released = true;
    this.resolve(undefined);
  }

  crashed({ how, isKilled }: Death, output: CapturedOutput): void {
    const { job } = this;
    job.onStop = undefined;
    const message = `the ${this.setup.options.kind} of its handler died (${how})`;
    this.reject(isKilled && job.stopped ? job.stopped : new HandlerCrash(message, lastLines(output.text, KEPT_LINES)));
  }

  unloadable(why: string, cause: unknown): void {
    this.job.onStop = undefined;
    const { module, onError } = this.setup;
    const error = new CroreError('WORKER_FAILED', `cannot load the handler module ${module}: ${why}`, { cause });
    onError(error, 'starting a handler');
    this.reject(error);
  }
}

/** Only what a schema made of a payload may be unfit for a message; it would be so again on a retry. */
function unsendable(error: unknown): unknown {
  if (!(error instanceof Error) || error.name === 'Fatal' || isCroreError(error)) return error;
  return new Fatal(`the payload cannot be sent to the handler: ${error.message}`, { cause: error });
}
