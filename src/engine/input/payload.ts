import type { StandardSchemaV1 } from '@standard-schema/spec';
import { CroreError } from '../../errors.js';
import type { Body } from '../../job/job.js';
import { acceptsPlain, type Codec, decodeWith, encodeWith } from './codec.js';

/**
 * Encodes a value for storage: bytes unchanged, everything else as JSON, and then with the codec if there is one. `what` names the value
 * in errors.
 */
export function encodeValue(value: unknown, what: string, limit: number, codec?: Codec): Body {
  const plain = value instanceof Uint8Array ? value : toJson(value, what);
  const body = codec ? encodeWith(codec, plain, what) : plain;
  checkSize(body, what, limit);
  return body;
}

/** An empty text decodes to null. */
export function decodeValue(body: Body, codec?: Codec, what = 'the value'): unknown {
  if (codec && !acceptsPlain(codec, body)) return decodeWith(codec, body, what);
  if (body === '') return null;
  return typeof body === 'string' ? JSON.parse(body) : body;
}

function toJson(value: unknown, what: string): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value === undefined ? null : value);
  } catch (error) {
    const why = (error as Error).message.split('\n')[0];
    throw new CroreError('BAD_PAYLOAD', `${what} cannot be written as JSON: ${why}`, { cause: error });
  }
  if (text === undefined)
    throw new CroreError('BAD_PAYLOAD', `${what} is a ${typeof value}, which JSON cannot represent`);
  return text;
}

export function checkSize(body: Body, what: string, limit: number): void {
  // A character takes at most three bytes, so the exact count is only needed near the limit.
  if (body.length * 3 <= limit) return;
  const size = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  if (size > limit) throw new CroreError('PAYLOAD_TOO_LARGE', `${what} is ${size} bytes, the limit is ${limit}`);
}

/**
 * Returns the validated value, or throws BAD_PAYLOAD with the schema's own messages. Synchronous when the schema is, as most are.
 */
export function validate<T>(schema: StandardSchemaV1<unknown, T>, value: unknown, what: string): T | Promise<T> {
  const result = schema['~standard'].validate(value);
  return result instanceof Promise ? result.then((late) => accept(late, what)) : accept(result, what);
}

function accept<T>(result: StandardSchemaV1.Result<T>, what: string): T {
  if (!result.issues) return result.value;
  const words = result.issues.slice(0, 3).map((issue) => {
    const path = issue.path?.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
    return path ? `${path}: ${issue.message}` : issue.message;
  });
  throw new CroreError('BAD_PAYLOAD', `${what} does not match the schema: ${words.join('; ')}`);
}

/** Refuses JSON with a number that JavaScript cannot hold: it would be changed silently. */
export function checkNumbers<T>(value: T, what: string): T {
  const walk: unknown[] = [value];
  for (let one = walk.pop(); one !== undefined; one = walk.pop()) {
    if (typeof one === 'number' && (!Number.isFinite(one) || (Number.isInteger(one) && !Number.isSafeInteger(one))))
      throw new CroreError(
        'BAD_PAYLOAD',
        `${what}: number ${one} is too large to be kept exactly: send it as a string`,
      );
    if (typeof one === 'object' && one !== null) for (const part of Object.values(one)) walk.push(part);
  }
  return value;
}
