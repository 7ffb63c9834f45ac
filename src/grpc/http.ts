import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { TlsMaterial } from './listen.js';

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface HttpSetup {
  /** Answers the calls of the contract as JSON. */
  handle: Handler;
  admits: (path: string, headers: IncomingMessage['headers']) => boolean;
  serving: () => boolean;
  tls: TlsMaterial | undefined;
  /** Nobody but this machine can reach it, so a name that is not of this machine is a trick. */
  loopback: boolean;
}

const LOOPBACK = /^(localhost|127(?:\.\d+){3}|\[::1\])(:\d+)?$/i;
const HINT = `Crore job server. Calls are POST requests with JSON:
  curl -H 'content-type: application/json' -d '{}' URL/crore.v1.Crore/Stats
  curl -H 'content-type: application/json' -d '{"queue":"mails","jobs":[{"payload":{"json":"{}"}}]}' URL/crore.v1.Crore/Add
`;

/** The same contract over plain HTTP, for curl and pages. */
export function httpServer(setup: HttpSetup): HttpServer {
  const handle: Handler = (request, response) => answer(setup, request, response);
  const { tls } = setup;
  const server = tls ? createSecureServer({ ...tls }, handle) : createServer(handle);
  server.requestTimeout = 60_000;
  server.headersTimeout = 15_000;
  return server as HttpServer;
}

function answer(setup: HttpSetup, request: IncomingMessage, response: ServerResponse): void {
  const path = new URL(request.url ?? '/', 'http://any').pathname;
  const wrong = refusal(setup, request);
  if (wrong) say(response, wrong[0], wrong[1]);
  else if (path === '/healthz') say(response, setup.serving() ? 200 : 503, setup.serving() ? 'ok' : 'shutting down');
  else if (!setup.admits(path, request.headers)) {
    response.setHeader('www-authenticate', 'Bearer');
    say(response, 401, 'a bearer token is needed');
  } else if (path === '/' && request.method === 'GET') say(response, 200, HINT);
  else if (request.method !== 'POST') {
    response.setHeader('allow', 'POST');
    say(response, 405, 'calls are POST requests');
  } else setup.handle(request, response);
}

/** Other people's pages must not speak for whoever reads them. */
function refusal({ loopback }: HttpSetup, request: IncomingMessage): [number, string] | undefined {
  const { host, origin } = request.headers;
  if (loopback && !LOOPBACK.test(host ?? '')) return [403, 'the Host header names another machine'];
  if (origin !== undefined && origin.replace(/^https?:\/\//, '') !== host)
    return [403, 'the Origin header names another site'];
  return undefined;
}

function say(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status;
  response.setHeader('content-type', 'text/plain; charset=utf-8');
  response.setHeader('x-content-type-options', 'nosniff');
  response.end(text.endsWith('\n') ? text : `${text}\n`);
}
