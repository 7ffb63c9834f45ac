/** Every way a call can be refused, with the sentence the documentation prints. `docs/errors.md` is tested against it. */
export const ERRORS = {
  BAD_NAME: 'A queue name, job id, worker id or key is empty, too long, or holds a NUL.',
  BAD_OPTION: 'An option is unknown, has the wrong type, or is out of range.',
  BAD_DURATION: 'A duration is neither milliseconds nor a text such as 250ms, 10s, 5m, 2h, 1d.',
  BAD_PAYLOAD: 'A payload cannot be written as JSON (circular, BigInt, undefined) or was refused by the schema.',
  PAYLOAD_TOO_LARGE: 'A payload, result, progress value or header block is over its limit.',
  BAD_URL: 'A store URL has an unknown scheme or a part that makes no sense.',
  UNKNOWN_UPSTREAM: 'A job names an upstream job that does not exist.',
  NOT_FOUND: 'No such job.',
  QUEUE_FULL: 'The queue is at its limit and took nothing.',
  LEASE_LOST: 'The lease of this job is gone: it was cancelled, taken back, or given to another worker.',
  JOB_DEAD: 'The awaited job is dead.',
  JOB_CANCELLED: 'The awaited job was cancelled.',
  JOB_GONE: 'The awaited job finished and its record is no longer kept.',
  TIMEOUT: 'The wait was longer than the caller allowed.',
  CLOSED: 'The connection or worker has been closed.',
  STORE_UNREACHABLE: 'The store does not answer.',
  STORE_UNCERTAIN: 'The connection broke before the answer came: the call may or may not have happened.',
  STORE_BUSY: 'Another process has kept the database file locked for too long.',
  STORE_FULL: 'The store has no room left (disk full, or Redis at maxmemory).',
  STORE_READONLY: 'The store cannot be written (a read-only file, or a Redis replica).',
  STORE_NEWER: 'The store was written by a newer Crore.',
  STORE_CORRUPT: 'The store holds something that Crore did not write, or not in this form.',
  STORE_UNSUPPORTED: 'The store is too old or lacks something Crore needs.',
} as const;

export type ErrorCode = keyof typeof ERRORS;

/** The one error class of the library: `code` is stable, `message` names the thing. */
export class CroreError extends Error {
  override readonly name = 'CroreError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** Thrown by a handler: the job is dead at once, whatever attempts it has left. */
export class Fatal extends Error {
  override readonly name = 'Fatal';
}
