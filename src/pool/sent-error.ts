import { CroreError, type ErrorCode, Fatal } from '../errors.js';
import { describeError } from '../job/attempt.js';

/** Anything that was thrown, in a form that a message can carry. A copy of an Error by `structuredClone` would lose its name and fields. */
export type SentError =
  | { thrown: unknown }
  /** The very reason that the handler got for its stop. */
  | { isReason: true }
  | {
      name: string;
      message: string;
      stack?: string;
      fields: Record<string, string | number | boolean>;
      cause?: SentError;
      errors?: SentError[];
    };

/** How many errors of an AggregateError, and how many causes behind each other, are sent. */
const MOST = 5;

/** Never throws: a Proxy may. `reason` is why the handler was asked to stop. */
export function packError(error: unknown, reason?: unknown, depth = 0): SentError {
  try {
    if (reason !== undefined && error === reason) return { isReason: true };
    return error instanceof Error ? packed(error, reason, depth) : { thrown: plain(error) };
  } catch {
    return { thrown: describeError(error).message };
  }
}

function packed(error: Error, reason: unknown, depth: number): SentError {
  const { name, message, stack, cause } = error;
  const { errors } = error as { errors?: unknown };
  const deeper = (one: unknown) => packError(one, reason, depth + 1);
  return {
    name: String(name),
    message: String(message),
    ...(typeof stack === 'string' ? { stack } : {}),
    fields: fieldsOf(error),
    ...(cause === undefined || cause === null || depth >= MOST ? {} : { cause: deeper(cause) }),
    ...(Array.isArray(errors) && depth < MOST ? { errors: errors.slice(0, MOST).map(deeper) } : {}),
  };
}

/** Codes and such: what a `backoff` function may want to see. */
function fieldsOf(error: Error): Record<string, string | number | boolean> {
  const fields = Object.entries(error).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value));
  return Object.fromEntries(fields.filter(([key]) => !['name', 'message', 'stack'].includes(key)));
}

function plain(thrown: unknown): unknown {
  const isSimple = !['object', 'function', 'symbol'].includes(typeof thrown) || thrown === null;
  return isSimple ? thrown : { message: describeError(thrown).message };
}

/** The error again; `reason` is that of the stop. */
export function unpackError(sent: SentError, reason?: unknown): unknown {
  if ('thrown' in sent) return sent.thrown;
  if ('isReason' in sent) return reason;
  const { name, stack, fields, cause, errors } = sent;
  const error = instanceOf(sent);
  if (error.name !== name) Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true });
  Object.defineProperty(error, 'stack', { value: stack, configurable: true, writable: true });
  Object.assign(error, fields);
  if (cause) hide(error, 'cause', unpackError(cause, reason));
  if (errors)
    hide(
      error,
      'errors',
      errors.map((one) => unpackError(one, reason)),
    );
  return error;
}

function instanceOf({ name, message, fields }: Extract<SentError, { name: string }>): Error {
  if (name === 'Fatal') return new Fatal(message);
  return name === 'CroreError' ? new CroreError(fields.code as ErrorCode, message) : new Error(message);
}

function hide(error: Error, key: string, value: unknown): void {
  Object.defineProperty(error, key, { value, configurable: true, writable: true });
}
