import { CroreError, type ErrorCode } from '../../../errors.js';

/** SQLSTATEs that our functions raise; the message is complete. */
const OURS: Record<string, ErrorCode> = { CR002: 'UNKNOWN_UPSTREAM', CR003: 'NOT_FOUND', CR004: 'BATCH_CLOSED' };

/** The call has to change jobs in a queue that it has not locked: it is repeated under the lock for all queues. */
export const CONCERNS_OTHERS = 'CR001';

const CODES: Record<string, ErrorCode> = {
  '25006': 'STORE_READONLY',
  '42501': 'STORE_READONLY',
  '53100': 'STORE_FULL',
  '53200': 'STORE_FULL',
  '55P03': 'STORE_BUSY',
  '57014': 'STORE_BUSY',
  '3F000': 'STORE_GONE',
  '42P01': 'STORE_GONE',
  '42883': 'STORE_GONE',
  '42703': 'STORE_GONE',
  '23514': 'STORE_CORRUPT',
};

/** The transaction was rolled back, and may succeed if it is repeated. */
const CONFLICTS = new Set(['40001', '40P01']);

/** There is no connection, or the server is about to start or stop. */
const CONNECTION =
  /^(ECONN\w+|EPIPE|ENOENT|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|CONNECT_TIMEOUT|CONNECTION_\w+|57P0[1235]|25P0[34]|53300|08\w{3})$/;

export function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

export function isConflict(error: unknown): boolean {
  return CONFLICTS.has(codeOf(error));
}

export function isConnectionFailure(error: unknown): boolean {
  return CONNECTION.test(codeOf(error));
}

/** Translates an error of the server or the driver. */
export function translate(error: unknown, shown: string): CroreError {
  if (error instanceof CroreError) return error;
  const code = codeOf(error);
  const message = firstLine((error as Error).message);
  if (OURS[code]) return new CroreError(OURS[code], message, { cause: error });
  return new CroreError(CODES[code] ?? 'STORE_UNREACHABLE', `${shown}: ${message}`, { cause: error });
}

export function firstLine(message: string): string {
  return message.split('\n')[0]!.slice(0, 300);
}
