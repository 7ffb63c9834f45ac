import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Engine } from '../engine/engine.js';
import { checkInteger, checkOptions, describe } from '../engine/input/check.js';
import { type Codec, checkCodec } from '../engine/input/codec.js';
import type { AddOptions } from '../engine/input/options.js';
import { decodeValue } from '../engine/input/payload.js';
import { CroreError, Fatal } from '../errors.js';
import type { Bytes, Entry } from '../job/job.js';
import type { Capacity } from '../store/store.js';
import type { Heartbeat } from '../worker/heartbeat/heartbeat.js';

/** What callers give to a queue, and what its handlers get. */

export interface QueueOptions<T, P = unknown> {
  /** Refuses new entries, with outcome `full`, beyond this many waiting entries or bytes. */
  limits?: Capacity;
  /**
   * Any Standard Schema (zod, valibot, arktype …): validates payloads in `add`, and again before the handler runs, which gets the
   * schema's output.
   */
  schema?: StandardSchemaV1<T, P>;
  /** Encodes payloads and results, after they became JSON and before they are stored: encryption, compression. */
  codec?: Codec;
}

/** What all queues of a connection share. */
export interface QueueContext {
  engine: Engine;
  heartbeat: Heartbeat;
  maxPayload: number;
  onError: (error: Error, what: string) => void;
  /** Workers and listeners to close together with the connection. */
  workers: Set<{ close(): Promise<void> }>;
  isClosed: () => boolean;
  /** The codecs of the queues of this connection, by name. */
  codecs: Map<string, Codec>;
}

/** A queue with its checked options, as the parts of `Queue` get it. */
export interface QueueSetup extends QueueContext {
  name: string;
  capacity: Capacity;
  schema: StandardSchemaV1<unknown, unknown> | undefined;
  codec: Codec | undefined;
}

export function resolveQueue<T, P>(context: QueueContext, name: string, options: QueueOptions<T, P>): QueueSetup {
  checkOptions(options, ['limits', 'schema', 'codec'], 'queue');
  const codec = checkCodec(options.codec);
  if (codec) context.codecs.set(name, codec);
  return {
    ...context,
    name,
    capacity: resolveCapacity(options.limits),
    schema: options.schema as StandardSchemaV1<unknown, unknown> | undefined,
    codec,
  };
}

export function refuseClosed({ name, isClosed }: QueueSetup): void {
  if (isClosed()) throw new CroreError('CLOSED', `queue '${name}': the connection has been closed`);
}

export type AddManyItem<T> = { payload: T } & AddOptions;

/** The headers of the caller have precedence: it may pass on a context of its own. */
export function withHeaders(
  options: AddOptions | undefined,
  headers: Record<string, string> | undefined,
): AddOptions | undefined {
  return headers ? { ...options, headers: { ...headers, ...options?.headers } } : options;
}

export function splitItem<T>(item: AddManyItem<T>): [T, AddOptions | undefined] {
  const { payload, ...options } = item;
  return [payload, Object.keys(options).length > 0 ? options : undefined];
}

/** The same error, prefixed with the item it belongs to. */
export function atItem(error: unknown, place: string): unknown {
  if (!(error instanceof CroreError)) return error;
  return new CroreError(error.code, `${place}: ${error.message}`, { cause: error });
}

/** Decodes the payload of an entry; raw tasks, including those that became jobs, are read in the form the worker asked for. */
export function readEntry({ job, task }: Entry, tasks: 'bytes' | 'text' | 'json', codec?: Codec): unknown {
  const value = decodeValue(task ?? job!.payload, codec, 'the payload');
  const isRaw = !job || job.spec.raw;
  return isRaw && value instanceof Uint8Array ? readTask(value, tasks) : value;
}

function readTask(task: Bytes, as: 'bytes' | 'text' | 'json'): unknown {
  if (as === 'bytes') return task;
  const text = Buffer.from(task.buffer, task.byteOffset, task.byteLength).toString();
  if (as === 'text') return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new Fatal('the task is not JSON');
  }
}

function resolveCapacity(limits: Capacity | undefined): Capacity {
  if (limits === undefined) return {};
  checkOptions(limits, ['count', 'bytes'], 'limits');
  return {
    count: limits.count === undefined ? undefined : checkInteger(limits.count, 'limits.count', 0),
    bytes: limits.bytes === undefined ? undefined : checkInteger(limits.bytes, 'limits.bytes', 0),
  };
}

export function checkCursor(cursor: string | undefined): string | undefined {
  if (cursor !== undefined && !/^[\w-]{1,4096}$/.test(cursor)) {
    throw new CroreError('BAD_OPTION', `invalid cursor ${describe(cursor)}: it was not returned by list`);
  }
  return cursor;
}
