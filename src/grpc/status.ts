import { type Code, ConnectError } from '@connectrpc/connect';
import { CroreError, ERRORS } from '../errors.js';

/** The gRPC status codes this server uses. */
export const STATUS = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type StatusName = keyof typeof STATUS;

/** Ends a call with a given status. */
export class CallError extends Error {
  constructor(
    readonly status: StatusName,
    message: string,
  ) {
    super(message);
  }
}

/** How an error is reported to a caller: ours by the table of errors, all others without their message. */
export function statusOf(error: unknown): { status: StatusName; message: string; code?: string } {
  if (error instanceof CallError) return { status: error.status, message: error.message };
  if (error instanceof CroreError) return { status: ERRORS[error.code].grpc, message: error.message, code: error.code };
  return { status: 'INTERNAL', message: 'internal error: see the log of the server' };
}

/** The same for calls that a library serves. */
export function connectErrorOf(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error;
  const { status, message, code } = statusOf(error);
  return new ConnectError(message, STATUS[status] as Code, code === undefined ? undefined : { 'crore-code': code });
}

/** `grpc-message` is percent-encoded ASCII. */
export function encodeMessage(text: string): string {
  return encodeURIComponent(text.slice(0, 1_000).toWellFormed()).replace(/%(20|2C|3A|3B|2F|3D|40|28|29|27)/g, (all) =>
    decodeURIComponent(all),
  );
}
