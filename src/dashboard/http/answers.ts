import { type CroreError, ERRORS, isCroreError } from '../../errors.js';
import type { ApiError } from '../api.js';

/** Sent with everything: no other site may embed the page, and it may load nothing but its own files. */
const PROTECTION = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** HTTP statuses of the gRPC statuses of our errors. */
const STATUSES: Record<string, number> = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 409,
  ABORTED: 409,
  ALREADY_EXISTS: 409,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 503,
};

export function respond(
  status: number,
  body: ConstructorParameters<typeof Response>[0],
  headers: Record<string, string> = {},
): Response {
  return new Response(body, { status, headers: { 'cache-control': 'no-store', ...headers, ...PROTECTION } });
}

export function json(content: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return respond(status, `${JSON.stringify(content)}\n`, {
    'content-type': 'application/json; charset=utf-8',
    ...headers,
  });
}

/** Somebody asked for something they may not have, or in a way that is not served: refused with a status. */
export function refuse(status: number, code: string, error: string): Response {
  return json({ error, code } satisfies ApiError, status);
}

/** The answer to a request that failed. Errors that are not ours say nothing of the inside. */
export function failed(error: unknown): Response {
  if (!isCroreError(error)) return refuse(500, 'INTERNAL', 'the request failed: the log of the server says why');
  return refuse(STATUSES[ERRORS[(error as CroreError).code]?.grpc ?? ''] ?? 500, error.code, error.message);
}
