import { CroreError } from '../../errors.js';
import { describeError } from '../../job/attempt.js';
import type { Body, Bytes } from '../../job/job.js';
import { checkOneOf, describe } from './check.js';

/**
 * Turns the payloads and results of a queue into other bytes and back, for example to encrypt or to compress them. Both functions are
 * synchronous and may throw.
 */
export interface Codec {
  encode(bytes: Uint8Array): Uint8Array;
  decode(bytes: Uint8Array): Uint8Array;
  /**
   * Whether JSON that did not go through the codec is accepted: from schedules, the command line, other languages. Default `refuse`.
   */
  plain?: 'accept' | 'refuse';
}

/** The first byte of what a codec gets: a value comes back as what it was. */
const JSON_TEXT = 1;
const RAW_BYTES = 2;

export function checkCodec(codec: Codec | undefined): Codec | undefined {
  if (codec === undefined) return undefined;
  if (codec === null || typeof codec !== 'object')
    throw new CroreError('BAD_OPTION', `codec must be an object with encode and decode, not ${describe(codec)}`);
  for (const name of ['encode', 'decode'] as const) {
    if (typeof codec[name] !== 'function')
      throw new CroreError('BAD_OPTION', `codec.${name} must be a function, not ${describe(codec[name])}`);
  }
  if (codec.plain !== undefined) checkOneOf(codec.plain, 'codec.plain', ['accept', 'refuse']);
  return codec;
}

/** `what` names the value in errors. */
export function encodeWith(codec: Codec, body: Body, what: string): Bytes {
  try {
    return checkBytes(codec.encode(marked(body)), 'encode');
  } catch (error) {
    throw new CroreError('BAD_PAYLOAD', `${what} cannot be encoded: ${describeError(error).message}`);
  }
}

export function decodeWith(codec: Codec, body: Body, what: string): unknown {
  try {
    if (typeof body === 'string') throw new Error("it did not go through the codec (codec.plain is 'refuse')");
    return unmarked(checkBytes(codec.decode(body), 'decode'));
  } catch (error) {
    throw new CroreError('BAD_PAYLOAD', `${what} cannot be decoded: ${describeError(error).message}`);
  }
}

/**
 * Refused by default: a codec that authenticates would otherwise be worth nothing, because whoever can write to the store could add
 * plain JSON instead. Plain bytes cannot be told from encoded ones and always have to decode.
 */
export function acceptsPlain({ plain }: Codec, body: Body): boolean {
  return plain === 'accept' && typeof body === 'string';
}

function marked(body: Body): Buffer {
  const isText = typeof body === 'string';
  const bytes = Buffer.allocUnsafe(1 + (isText ? Buffer.byteLength(body) : body.length));
  bytes[0] = isText ? JSON_TEXT : RAW_BYTES;
  if (isText) bytes.write(body, 1);
  else bytes.set(body, 1);
  return bytes;
}

function unmarked(bytes: Bytes): unknown {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).subarray(1);
  if (bytes[0] === RAW_BYTES) return content;
  if (bytes[0] === JSON_TEXT) return parsed(content.toString());
  throw new Error('codec.decode returned what codec.encode was never given');
}

/** The message of JSON.parse quotes the text, and errors are stored as they are. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('what codec.decode returned is not JSON');
  }
}

function checkBytes(bytes: unknown, by: 'encode' | 'decode'): Bytes {
  if (bytes instanceof Uint8Array) return bytes;
  const found = bytes instanceof Promise ? 'a promise' : describe(bytes);
  if (bytes instanceof Promise) bytes.catch(() => {}); // its result comes too late to matter
  throw new Error(`codec.${by} must return bytes, not ${found}`);
}
