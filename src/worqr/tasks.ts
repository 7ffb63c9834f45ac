import { describe } from '../engine/input/check.js';
import { checkSize, encodeValue } from '../engine/input/payload.js';
import { CroreError } from '../errors.js';
import type { Bytes } from '../job/job.js';
import { MAX_GROUP } from '../store/raw-store.js';

const MAX_TASK = 16 * 1024 * 1024;
/** Maximum bytes of all tasks in one call. */
const MAX_CALL = 64 * 1024 * 1024;
const MAX_RESULT = 1024 * 1024;

/** A task in process. */
export interface Process<Task = string> {
  id: string;
  task: Task;
}

export function toBytes(task: unknown): Bytes {
  const bytes = typeof task === 'string' ? Buffer.from(task) : task;
  if (!(bytes instanceof Uint8Array))
    throw new CroreError('BAD_PAYLOAD', `a task must be a string or bytes, not ${describe(task)}`);
  checkSize(bytes, 'the task', MAX_TASK);
  return bytes;
}

/** The tasks of one call: one script adds them all. */
export function toGroup(task: unknown): Bytes[] {
  if (!Array.isArray(task)) return [toBytes(task)];
  if (task.length > MAX_GROUP) {
    const text = `one call takes at most ${MAX_GROUP} tasks, not ${task.length}: nothing was enqueued`;
    throw new CroreError('BAD_PAYLOAD', text);
  }
  const tasks = task.map(toBytes);
  const size = tasks.reduce((sum, one) => sum + one.length, 0);
  if (size > MAX_CALL)
    throw new CroreError('PAYLOAD_TOO_LARGE', `the tasks of one call are ${size} bytes, the limit is ${MAX_CALL}`);
  return tasks;
}

export function toResult(result: unknown): string | undefined {
  if (result === undefined) return undefined;
  if (result instanceof Uint8Array) throw new CroreError('BAD_PAYLOAD', 'a result must be JSON, not bytes');
  return encodeValue(result, 'the result', MAX_RESULT) as string;
}

/** A task in the form that an instance returns. */
export function fromBytes(task: Bytes, binary: boolean): string | Buffer {
  return binary ? Buffer.from(task) : asBuffer(task).toString();
}

export function asBuffer(bytes: Bytes): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
