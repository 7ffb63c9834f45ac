import { CroreError, type ErrorCode } from '../../errors.js';
import type { ServerError } from '../../store/redis/connection/resp.js';

/** The error codes for the first word of a Redis error; all other errors concern the data or commands of the store. */
const KINDS: Record<string, ErrorCode> = {
  WRONGTYPE: 'STORE_CORRUPT',
  NOAUTH: 'BAD_URL',
  WRONGPASS: 'BAD_URL',
  NOPERM: 'BAD_URL',
  READONLY: 'STORE_READONLY',
  OOM: 'STORE_FULL',
  LOADING: 'STORE_BUSY',
  BUSY: 'STORE_BUSY',
  TRYAGAIN: 'STORE_BUSY',
  MASTERDOWN: 'STORE_UNREACHABLE',
  CLUSTERDOWN: 'STORE_UNREACHABLE',
};

/** Errors that may be temporary: a continuous run waits until they pass, a single run reports them. */
const PASSING: readonly ErrorCode[] = ['STORE_UNREACHABLE', 'STORE_READONLY', 'STORE_FULL', 'STORE_BUSY'];

export function serverFailure(shown: string, error: ServerError): CroreError {
  // For an error inside a script, Redis 6.2 puts its error word after the script's name, Redis 7 before it.
  const word = Object.keys(KINDS).find((kind) => new RegExp(`(^|[:-] ?)${kind}\\b`).test(error.message)) ?? '';
  const first = error.message.split('\n')[0]!.replace(/ script: [0-9a-f]{40}.*$/, '');
  return new CroreError(KINDS[word] ?? 'STORE_UNSUPPORTED', `${shown}: ${first}${advice(error)}`);
}

function advice(error: ServerError): string {
  if (error.kind === 'MOVED') return ' (this is a Cluster: use a redis+cluster:// URL)';
  if (/CROSSSLOT|non local key/.test(error.message)) return ' (on a Cluster the prefix needs a {tag})';
  return /unknown.*command/i.test(error.message) ? ' (Redis 6.2 or newer is needed)' : '';
}

export function unreachable(shown: string, cause: unknown): CroreError {
  return new CroreError('STORE_UNREACHABLE', `cannot reach ${shown}: ${reason(cause)}`, { cause });
}

export function isPassing(error: unknown): boolean {
  return error instanceof CroreError && PASSING.includes(error.code);
}

function reason(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'connection refused';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the host name does not resolve';
  if (code === 'ENOENT') return 'no such socket';
  return message || String(code);
}
