import type { Codec } from '../../engine/input/codec.js';
import { Fatal, isCroreError } from '../../errors.js';
import type { Entry } from '../../job/job.js';
import type { Relatives } from '../relatives.js';
import type { ActiveJob, RunningJob } from '../running.js';
import type { BatchSetup } from './batch-options.js';

/** The user's handler, and how its payload is prepared. */
export interface Prepare<T> {
  /** Decodes the payload of an entry. */
  read: (entry: Entry) => T;
  /** Validates the payload before the handler runs, if there is a schema. */
  check?: (job: RunningJob<T>) => T | Promise<T>;
  handler: (job: ActiveJob<T>) => unknown;
  /** Set if the handler takes many jobs at once: then `handler` is not used. */
  batch?: BatchSetup<T>;
  /** The codec of the queue, if it has one. Decoding can fail then, so it is done before the handler runs. */
  codec?: Codec;
  /** How jobs reach the jobs they belong with. */
  relatives?: Relatives;
  /** Each handler runs in a process of its own, so that a job that crashed can run beside others. */
  separate?: boolean;
  /** How many jobs the handler takes now, if it runs elsewhere: while jobs are short, more than `concurrency`. */
  capacity?: (() => number) | undefined;
  /** Ends the processes of the handler, if it has any, whether or not they are busy. */
  close?: () => Promise<void>;
}

/** Returns the handler's promise; a synchronous exception becomes a rejection. */
export function callHandler<T>(prepare: Prepare<T>, job: RunningJob<T>): PromiseLike<unknown> {
  try {
    const prepared = preparePayload(prepare, job);
    return prepared ? prepared.then(() => prepare.handler(job)) : Promise.resolve(prepare.handler(job));
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Decodes and validates the payload. Synchronous if the schema is, or if there is none. */
export function preparePayload<T>({ codec, check }: Prepare<T>, job: RunningJob<T>): Promise<void> | undefined {
  if (codec) job.decode(); // what it throws is not fatal: another worker may have the key
  return check ? checkPayload(check, job) : undefined;
}

function checkPayload<T>(check: NonNullable<Prepare<T>['check']>, job: RunningJob<T>): Promise<void> | undefined {
  try {
    const payload = check(job);
    if (payload instanceof Promise) return payload.then((value) => job.setPayload(value), refuse);
    job.setPayload(payload);
    return undefined;
  } catch (error) {
    return refuse(error);
  }
}

/** A payload that the schema refuses will also fail on a retry. */
function refuse(error: unknown): never {
  throw isCroreError(error) ? new Fatal(error.message) : error;
}
