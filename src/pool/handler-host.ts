import { encodeValue } from '../engine/payload.js';
import type { Entry, Spec } from '../job/job.js';
import type { ProgressUpdate } from '../store/store.js';
import { type ActiveJob, RunningJob } from '../worker/running.js';
import {
  compact,
  type HandlerEnd,
  type HostCommand,
  type HostReply,
  type HostSetup,
  type SentJob,
} from './messages.js';
import { NoteSender } from './note-sender.js';
import { packError, unpackError } from './sent-error.js';

type Handler = (job: ActiveJob<unknown>) => unknown;

/** Loads the handler and runs the jobs that are sent to this process or thread, one at a time. */
export class HandlerHost {
  #handler: Handler | undefined;
  #job: RunningJob<unknown> | undefined;
  readonly #notes: NoteSender;

  constructor(
    private readonly setup: HostSetup,
    private readonly send: (reply: HostReply) => void,
  ) {
    this.#notes = new NoteSender(send);
  }

  async load(): Promise<void> {
    try {
      this.#handler = handlerOf(await import(this.setup.module));
      this.send({ ready: true });
    } catch (error) {
      this.send({ unloadable: packError(error) });
    }
  }

  obey(command: HostCommand): void {
    if ('run' in command) void this.#run(command.run);
    else if ('stop' in command) this.#job?.stop(unpackError(command.stop) as Error);
    else if ('written' in command) this.#notes.written(command);
  }

  async #run(sent: SentJob): Promise<void> {
    // A handler may leave something running that writes when its job has ended: the job is no longer ours then.
    const write = async (update: ProgressUpdate) => this.#job === job && this.#notes.write(update);
    const job = receivedJob(sent, write);
    this.#job = job;
    const began = performance.now();
    const end = await this.#call(job);
    end.took = performance.now() - began;
    this.#notes.flush();
    this.#job = undefined;
    const { snoozed, released } = job;
    this.send({ end: { ...end, ...(snoozed === undefined ? {} : { snoozed }), ...(released ? { released } : {}) } });
  }

  async #call(job: RunningJob<unknown>): Promise<HandlerEnd> {
    try {
      const value = await this.#handler!(job);
      return value === undefined || job.released || job.snoozed !== undefined ? {} : this.#encode(value);
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

function receivedJob(sent: SentJob, write: (update: ProgressUpdate) => Promise<boolean>): RunningJob<unknown> {
  const { queue, lease, id, payload, attempt, maxAttempts, crashes, headers } = sent;
  const spec = { attempts: maxAttempts, headers } as Spec;
  const entry = { lease, job: { attempt, crashes, spec } } as Entry;
  const bytes = payload instanceof Uint8Array;
  const read = () => (bytes ? Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength) : payload);
  const job = new RunningJob<unknown>(queue, entry, { spec }, read, (_lease, update) => write(update));
  job.taskId = id;
  return job;
}
