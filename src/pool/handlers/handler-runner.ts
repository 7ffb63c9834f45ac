import { encodeValue } from '../../engine/input/payload.js';
import type { Entry, Spec } from '../../job/job.js';
import type { ProgressUpdate } from '../../store/store.js';
import type { Relatives } from '../../worker/relatives.js';
import { type ActiveJob, RunningJob } from '../../worker/running.js';
import type { CallRunner } from '../call-host.js';
import { compact } from '../messages.js';
import { packError, type SentError, unpackError } from '../sent-error.js';
import type { HandlerEnd, HandlerSetup, NoteAnswer, RelativesAnswer, SentJob } from './handler-messages.js';
import { NoteSender } from './note-sender.js';
import { RemoteRelatives } from './remote-relatives.js';

type Handler = (job: ActiveJob<unknown>) => unknown;

/** Loads the handler of a worker and calls it with the jobs that are sent to this process or thread. */
export class HandlerRunner implements CallRunner {
  #handler: Handler | undefined;
  #job: RunningJob<unknown> | undefined;
  readonly #notes = new NoteSender();
  readonly #relatives = new RemoteRelatives();

  constructor(private readonly setup: HandlerSetup) {}

  async load(): Promise<void> {
    this.#handler = handlerOf(await import(this.setup.module));
  }

  async run(sent: SentJob, note: (note: unknown) => void): Promise<HandlerEnd> {
    // A handler may leave something running that writes when its job has ended: the job is no longer ours then.
    const write = async (update: ProgressUpdate) => this.#job === job && this.#notes.write(update, note);
    const job = receivedJob(sent, write, this.#relatives.of(note));
    this.#job = job;
    const began = performance.now();
    const end = await this.#call(job);
    end.took = performance.now() - began;
    this.#notes.flush();
    this.#job = undefined;
    if (job.snoozed !== undefined) end.snoozed = job.snoozed;
    if (job.released) end.released = true;
    if (job.awaited) end.awaited = job.awaited;
    return end;
  }

  stop(reason: SentError): void {
    this.#job?.stop(unpackError(reason) as Error);
  }

  answer(answer: NoteAnswer | RelativesAnswer): void {
    if ('asked' in answer) this.#relatives.answered(answer);
    else this.#notes.written(answer);
  }

  async #call(job: RunningJob<unknown>): Promise<HandlerEnd> {
    try {
      const value = await this.#handler!(job);
      const isSettled = job.released || job.snoozed !== undefined || job.awaited !== undefined;
      return value === undefined || isSettled ? {} : this.#encode(value);
    } catch (error) {
      return { thrown: packError(error, job.stopped) };
    }
  }

  /** Encoded here, so that the worker's process need not do it for all. */
  #encode(value: unknown): HandlerEnd {
    try {
      const body = encodeValue(value, 'the result', this.setup.maxPayload);
      return { result: compact(body) };
    } catch (error) {
      return { unencodable: packError(error) };
    }
  }
}

function handlerOf(module: { default?: unknown }): Handler {
  if (typeof module.default === 'function') return module.default as Handler;
  throw new TypeError('it has no default export that is a function');
}

function receivedJob(
  sent: SentJob,
  write: (update: ProgressUpdate) => Promise<boolean>,
  relatives: Relatives,
): RunningJob<unknown> {
  const { queue, lease, id, payload, attempt, maxAttempts, crashes, headers, needs } = sent;
  const spec = { attempts: maxAttempts, headers, needs } as Spec;
  const entry = { lease, job: { attempt, crashes, spec } } as Entry;
  const bytes = payload instanceof Uint8Array;
  const read = () => (bytes ? Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength) : payload);
  const job = new RunningJob<unknown>(queue, entry, { spec }, read, (_lease, update) => write(update), relatives);
  job.taskId = id;
  return job;
}
