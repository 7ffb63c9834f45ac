import { isCroreError } from '../errors.js';

/** What went wrong in an attempt. */
export interface AttemptError {
  /** The code of a CroreError; empty if what was thrown is not an Error. */
  name: string;
  message: string;
  stack?: string;
  /** The last lines that the executable wrote to standard error. */
  stderr?: string;
}

/** One attempt of a job. */
export interface Attempt {
  /** 1 for the first one; the same number again after a crash, which is not charged. */
  attempt: number;
  /** `crashed`: the worker was lost. */
  outcome: 'done' | 'failed' | 'crashed';
  startedAt?: number;
  endedAt: number;
  worker?: string;
  error?: AttemptError;
}

export const MANUAL_ACTIONS = ['retried', 'cancelled', 'changed', 'moved'] as const;

/** Something a person did to a job. */
export interface ManualAction {
  action: (typeof MANUAL_ACTIONS)[number];
  at: number;
  /** Who, in a few words, as given by the interface that was used. */
  by: string;
  /** What was changed, or the queue that it was moved from. */
  detail?: string;
}

/** Characters kept of each part of an error. */
const MOST = { name: 200, message: 4_096, stack: 8_192, stderr: 4_096 };
/** Bytes of one attempt in the history, of which the stores keep the last 65,536. */
const LARGEST = 30_000;

/** Describes anything that was thrown. Never throws itself: a Proxy or an object without a prototype may. */
export function describeError(error: unknown): AttemptError {
  try {
    if (!(error instanceof Error)) return { name: '', message: cut(textOf(error), MOST.message) };
    const { stderr } = error as { stderr?: unknown };
    const stack = stackOf(error);
    return {
      name: cut(String(isCroreError(error) ? error.code : error.name), MOST.name),
      message: cut(`${error.message}${causesOf(error)}`, MOST.message),
      ...(stack === undefined ? {} : { stack: cut(stack, MOST.stack) }),
      ...(typeof stderr === 'string' && stderr !== '' ? { stderr: stderr.slice(-MOST.stderr) } : {}),
    };
  } catch {
    return { name: '', message: 'something was thrown that cannot be printed' };
  }
}

/** An object that is no Error but has a message is described by it. */
function textOf(thrown: unknown): string {
  const { message } = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as { message?: unknown };
  return typeof message === 'string' && message !== '' ? message : String(thrown);
}

/** How many causes of an error, and errors of an AggregateError, are named. */
const MOST_CAUSES = 5;

/** The errors behind an error: often they alone say what is wrong, as with `fetch failed`. */
function causesOf(error: Error): string {
  const texts: string[] = [];
  const seen = new Set<unknown>([error]);
  const { errors } = error as { errors?: unknown };
  const queue: unknown[] = [error.cause, ...(Array.isArray(errors) ? errors.slice(0, MOST_CAUSES) : [])];
  for (const one of queue) {
    if (one === undefined || one === null || seen.has(one) || texts.length >= MOST_CAUSES) continue;
    seen.add(one);
    const { code, cause } = one as { code?: unknown; cause?: unknown };
    const text = textOf(one);
    texts.push(typeof code === 'string' && !text.includes(code) ? `${code} ${text}` : text);
    queue.push(cause);
  }
  return texts.length === 0 ? '' : ` (caused by: ${texts.join('; ')})`;
}

/** The stack, unless reading it fails. */
function stackOf(error: Error): string | undefined {
  try {
    return typeof error.stack === 'string' ? error.stack : undefined;
  } catch {
    return undefined;
  }
}

/** The error in one line, as kept with the job. */
export function errorLine({ name, message }: AttemptError): string {
  // SQLite cuts texts at a NUL.
  return cut(name === '' ? message : `${name}: ${message}`, MOST.message).replaceAll('\0', '\uFFFD');
}

/** The form in which stores append an attempt to the history of a job. */
export function writeAttempt(attempt: Attempt): string {
  const full = `${JSON.stringify(attempt)}\n`;
  if (Buffer.byteLength(full) <= LARGEST || !attempt.error) return full;
  const { name, message } = attempt.error;
  return `${JSON.stringify({ ...attempt, error: { name, message: cut(message, MOST.message / 4) } })}\n`;
}

/** The same for an action. */
export function writeAction(action: ManualAction['action'], at: number, by: string, detail?: string): string {
  const known = detail === undefined ? {} : { detail: cut(detail.toWellFormed(), MOST.message) };
  return `${JSON.stringify({ action, at, by: cut(by.toWellFormed(), MOST.name), ...known })}\n`;
}

/** Reads a history, oldest attempt first; its beginning may have been cut off within a line. */
export function readAttempts(history: string): Attempt[] {
  return linesOf(history).filter((line) => 'outcome' in line);
}

export function readActions(history: string): ManualAction[] {
  return linesOf(history).filter((line) => 'action' in line);
}

function linesOf(history: string): (Attempt | ManualAction)[] {
  return history
    .split('\n')
    .map(parse)
    .filter((line) => line !== undefined);
}

function parse(line: string): Attempt | ManualAction | undefined {
  try {
    return line === '' ? undefined : (JSON.parse(line) as Attempt | ManualAction);
  } catch {
    return undefined;
  }
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
