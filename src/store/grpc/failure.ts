import { Code, ConnectError } from '@connectrpc/connect';
import { CroreError, ERRORS, type ErrorCode } from '../../errors.js';

/** Translates a transport error. `lost`: the call may or may not have been executed. */
export function translate(error: unknown, shown: string): { error: CroreError; again: boolean; lost: boolean } {
  if (error instanceof CroreError) return { error, again: false, lost: false };
  const known = ConnectError.from(error);
  const code = known.metadata.get('crore-code') as ErrorCode | null;
  // A server that closes its store is shutting down: another one may answer the next try.
  if (code && code in ERRORS && code !== 'CLOSED') {
    return { error: new CroreError(code, known.rawMessage, { cause: error }), again: false, lost: false };
  }
  const away = known.code === Code.Unavailable || known.code === Code.DeadlineExceeded || known.code === Code.Canceled;
  const refused = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(
    String((known.cause as Error | undefined)?.message ?? known.message),
  );
  // Aborted: the client library says so when the connection was reset, whether or not the call had reached the server.
  const cut = known.code === Code.Aborted || isCut(known);
  return {
    error: new CroreError(codeOf(known.code), `server ${shown}: ${known.rawMessage}`, { cause: error }),
    again: away || cut,
    lost: (away || cut) && !refused,
  };
}

/** Connections that break during a call do not always produce a status. */
function isCut(error: ConnectError): boolean {
  return error.code === Code.Internal || error.code === Code.Unknown
    ? /ECONNRESET|EPIPE|socket|closed|GOAWAY|stream|session/i.test(error.message)
    : false;
}

function codeOf(code: Code): ErrorCode {
  switch (code) {
    case Code.Unauthenticated:
      return 'BAD_URL';
    case Code.PermissionDenied:
      return 'NOT_ALLOWED';
    case Code.Unimplemented:
      return 'STORE_UNSUPPORTED';
    case Code.InvalidArgument:
      return 'BAD_OPTION';
    case Code.ResourceExhausted:
      return 'PAYLOAD_TOO_LARGE';
    default:
      return 'STORE_UNREACHABLE';
  }
}
