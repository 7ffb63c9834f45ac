/** Every error code: its meaning, gRPC status and exit code. Tests check `docs/errors.md` against this table. */
export const ERRORS = {
  BAD_NAME: {
    meaning: 'A queue name, job id, worker id or key is empty, too long, or contains a NUL.',
    grpc: 'INVALID_ARGUMENT',
    exit: 2,
  },
  BAD_OPTION: {
    meaning: 'An option is unknown, has the wrong type, or is out of range.',
    grpc: 'INVALID_ARGUMENT',
    exit: 2,
  },
  BAD_DURATION: {
    meaning: 'A duration is neither milliseconds nor a string such as 250ms, 10s, 5m, 2h, 1d.',
    grpc: 'INVALID_ARGUMENT',
    exit: 2,
  },
  BAD_PAYLOAD: {
    meaning:
      'A payload cannot be written as JSON (circular, BigInt, a function), does not match the schema, or the codec fails.',
    grpc: 'INVALID_ARGUMENT',
    exit: 2,
  },
  BAD_RESULT: {
    meaning: 'A batch handler returned something other than one result for each job, or settled a job twice.',
    grpc: 'INVALID_ARGUMENT',
    exit: 2,
  },
  REFUSED: {
    meaning: 'Middleware of the queue refused a job: it threw an error (the cause), or did not call next().',
    grpc: 'FAILED_PRECONDITION',
    exit: 1,
  },
  PAYLOAD_TOO_LARGE: {
    meaning: 'A payload, result, progress value or header block is over its limit.',
    grpc: 'INVALID_ARGUMENT',
    exit: 2,
  },
  BAD_URL: {
    meaning: 'A store URL has an unknown scheme or an invalid part.',
    grpc: 'INVALID_ARGUMENT',
    exit: 2,
  },
  BAD_FLOW: {
    meaning: 'A flow cannot be read or is invalid: a cycle, an unknown or duplicate node, a missing command.',
    grpc: 'INVALID_ARGUMENT',
    exit: 2,
  },
  FLOW_BUSY: {
    meaning: 'The flow is already being run by another process.',
    grpc: 'FAILED_PRECONDITION',
    exit: 69,
  },
  WORKER_FAILED: {
    meaning:
      'The workers of a flow, or the processes of a handler, cannot be started: they exit before they are ready.',
    grpc: 'UNAVAILABLE',
    exit: 69,
  },
  NOT_ALLOWED: {
    meaning: 'The token of the server allows looking only, and the call would change something.',
    grpc: 'PERMISSION_DENIED',
    exit: 77,
  },
  JOB_STARTED: {
    meaning: 'The job has started or ended, and can no longer be changed.',
    grpc: 'FAILED_PRECONDITION',
    exit: 1,
  },
  JOB_LINKED: {
    meaning: 'The job needs other jobs, or they need it: it cannot move to another queue.',
    grpc: 'FAILED_PRECONDITION',
    exit: 1,
  },
  ID_TAKEN: {
    meaning: 'The other queue already has a job with this id or its unique key.',
    grpc: 'ALREADY_EXISTS',
    exit: 1,
  },
  UNKNOWN_UPSTREAM: {
    meaning: 'A job names an upstream job that does not exist.',
    grpc: 'FAILED_PRECONDITION',
    exit: 2,
  },
  BATCH_CLOSED: {
    meaning: 'The batch has been closed, or has ended: no more jobs can be added to it.',
    grpc: 'FAILED_PRECONDITION',
    exit: 1,
  },
  NOT_STARTED: {
    meaning: 'The worker has not been started, or was lost and must be started again.',
    grpc: 'FAILED_PRECONDITION',
    exit: 1,
  },
  NOT_WORKING: { meaning: 'The worker does not work on this queue.', grpc: 'FAILED_PRECONDITION', exit: 1 },
  DUPLICATE_TASK: {
    meaning: 'An equal unique task is already waiting or in process.',
    grpc: 'ALREADY_EXISTS',
    exit: 1,
  },
  PROCESS_GONE: {
    meaning: 'No such process: it was finished or returned, its worker was lost, or the id is unknown.',
    grpc: 'NOT_FOUND',
    exit: 1,
  },
  NOT_FOUND: { meaning: 'No such job, queue or schedule.', grpc: 'NOT_FOUND', exit: 1 },
  QUEUE_FULL: { meaning: 'The queue is full: nothing was added.', grpc: 'RESOURCE_EXHAUSTED', exit: 1 },
  LEASE_LOST: {
    meaning:
      'The lease of this job was lost: the job was cancelled, returned to the queue, or given to another worker.',
    grpc: 'FAILED_PRECONDITION',
    exit: 1,
  },
  DEAD_DROPPED: {
    meaning: 'A queue has dropped dead jobs because there were more of them than it keeps. A warning.',
    grpc: 'RESOURCE_EXHAUSTED',
    exit: 1,
  },
  JOB_DEAD: { meaning: 'The awaited job is dead.', grpc: 'ABORTED', exit: 100 },
  JOB_CANCELLED: { meaning: 'The awaited job was cancelled.', grpc: 'ABORTED', exit: 101 },
  JOB_GONE: { meaning: 'The awaited job finished and its record is no longer kept.', grpc: 'NOT_FOUND', exit: 1 },
  TIMEOUT: { meaning: 'The wait timed out.', grpc: 'DEADLINE_EXCEEDED', exit: 124 },
  CLOSED: { meaning: 'The connection or worker has been closed.', grpc: 'UNAVAILABLE', exit: 69 },
  STORE_UNREACHABLE: { meaning: 'The store does not answer.', grpc: 'UNAVAILABLE', exit: 69 },
  STORE_UNCERTAIN: {
    meaning: 'The connection broke before the reply arrived: the call may or may not have taken effect.',
    grpc: 'UNAVAILABLE',
    exit: 69,
  },
  STORE_BUSY: {
    meaning: 'Another process has kept the database file, or a queue on PostgreSQL, locked for too long.',
    grpc: 'UNAVAILABLE',
    exit: 69,
  },
  STORE_FULL: {
    meaning: 'The store has no space left (disk full, or Redis at maxmemory).',
    grpc: 'RESOURCE_EXHAUSTED',
    exit: 69,
  },
  STORE_READONLY: {
    meaning: 'The store is read-only (a read-only file, a replica, or a role of PostgreSQL without the privileges).',
    grpc: 'FAILED_PRECONDITION',
    exit: 69,
  },
  STORE_GONE: {
    meaning: 'The database file, or the schema on PostgreSQL, was deleted or replaced while it was open.',
    grpc: 'DATA_LOSS',
    exit: 69,
  },
  STORE_NEWER: { meaning: 'The store was written by a newer Crore.', grpc: 'FAILED_PRECONDITION', exit: 69 },
  STORE_CORRUPT: {
    meaning: 'The store contains data that Crore did not write, or data in an unknown format.',
    grpc: 'DATA_LOSS',
    exit: 69,
  },
  STORE_UNSUPPORTED: {
    meaning: 'The store is too old or lacks a feature that Crore needs.',
    grpc: 'FAILED_PRECONDITION',
    exit: 69,
  },
} as const;

export type ErrorCode = keyof typeof ERRORS;

/** The only error class of the library: `code` is stable, `message` names what is wrong. */
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

/**
 * Also recognizes errors from another copy of this package: the command line is a bundle, and a module it imports may load the
 * library.
 */
export function isCroreError(error: unknown): error is CroreError {
  return hasName(error, 'CroreError');
}

/** Never throws, whatever the value: a Proxy may throw on access. */
function hasName(error: unknown, name: string): boolean {
  try {
    return error instanceof Error && error.name === name;
  } catch {
    return false;
  }
}

/** Throw it from a handler to make the job dead at once, regardless of its remaining attempts. */
export class Fatal extends Error {
  override readonly name = 'Fatal';
}

export function isFatal(error: unknown): error is Fatal {
  return hasName(error, 'Fatal');
}
