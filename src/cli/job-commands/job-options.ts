import { isUtf8 } from 'node:buffer';
import type { Command } from 'commander';
import { checkName } from '../../engine/input/check.js';
import { checkNumbers } from '../../engine/input/payload.js';
import { CroreError } from '../../errors.js';
import type { ScheduledJobOptions } from '../../index.js';
import { duration, whole } from '../option-values.js';
import { printable } from '../output.js';

/** How a line or an argument becomes a payload, and the options of its job; shared by `push` and `schedule add`. */

/** The bytes of an argument. Node has already replaced invalid UTF-8 in it, which must not be stored as the payload. */
export function argumentBytes(text: string): Buffer {
  if (!text.includes('\ufffd')) return Buffer.from(text);
  throw new CroreError('BAD_PAYLOAD', 'a payload in the arguments is not valid UTF-8: pass it on standard input');
}

/** Text that is not valid UTF-8 stays bytes. */
export function readText(bytes: Buffer): unknown {
  return isUtf8(bytes) ? bytes.toString() : new Uint8Array(bytes);
}

/** JSON if it parses, else text. */
export function readValue(bytes: Buffer): unknown {
  const text = readText(bytes);
  if (typeof text !== 'string') return text;
  // JavaScript would change a number with more digits than it can represent.
  if (/^\s*-?\d+\s*$/.test(text) && !Number.isSafeInteger(Number(text))) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * A payload from a user, who is told about broken JSON: a missing quote is far more likely than a text that begins with a
 * bracket. `what` names the payload in the error.
 */
export function readPayload(bytes: Buffer, what: string): unknown {
  const value = readValue(bytes);
  if (typeof value === 'string' && /^\s*[[{]/.test(bytes.toString())) {
    const why = printable(jsonError(value));
    throw new CroreError('BAD_PAYLOAD', `${what} looks like JSON but is not: ${why}; --text queues it as text`);
  }
  return value instanceof Uint8Array ? value : checkNumbers(value, what);
}

function jsonError(text: string): string {
  try {
    JSON.parse(text);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

export interface JobLine {
  priority?: string;
  unique?: string;
  group?: string;
  reserve?: string;
  attempts?: string;
  retryFor?: string;
  backoff?: string;
  text?: boolean;
}

/** Names of the options, as in `JobLine`. */
export const JOB_LINE = ['priority', 'unique', 'group', 'reserve', 'attempts', 'retryFor', 'backoff', 'text'] as const;

export function jobLine(command: Command): Command {
  return command
    .option('--priority <n>', 'Higher runs first (default: 0).')
    .option('--unique <key>', 'Only one job with this key may wait or run at a time.')
    .option('--group <name>', 'Jobs of one group take turns with those of others.')
    .option('--reserve <time>', 'An attempt that takes longer counts as failed.')
    .option('--attempts <n>', 'Maximum number of attempts (default: 5).')
    .option('--retry-for <time>', 'Retry for this long, however many attempts that takes.')
    .option('--backoff <time>', 'Wait this long between attempts (default: 1s, increasing).')
    .option('--text', 'Treat payloads as text, even if they look like JSON.');
}

/** The job options that were given, and no others. */
export function resolveJobLine(line: JobLine): ScheduledJobOptions {
  return given({
    priority: whole(line.priority, '--priority', -1_000_000, 1_000_000),
    unique: line.unique === undefined ? undefined : checkName(line.unique, '--unique'),
    group: line.group === undefined ? undefined : checkName(line.group, '--group'),
    reservation: duration(line.reserve, '--reserve'),
    attempts: whole(line.attempts, '--attempts', 1, 1_000_000),
    retryFor: duration(line.retryFor, '--retry-for'),
    backoff: duration(line.backoff, '--backoff'),
  });
}

export function given<T extends object>(all: T): Partial<T> {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Partial<T>;
}
