import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { PROMETHEUS_TYPE } from '../engine/metrics/prometheus.js';
import type { TlsMaterial } from './addresses.js';
import type { Refusal } from './auth.js';
import type { Log, ServerLimits } from './context.js';
import { indexText, notFoundText } from './http-index.js';
import type { ByteBudget } from './http2/byte-budget.js';
import { authorityOf, isOfThisMachine, pathOf } from './http2/request-target.js';
import type { RpcHandlers } from './rpc-handlers.js';

/** Pages for people: a dashboard, which checks itself who may see it. */
export interface Pages {
  /** Called before the port is opened; never fails, and settles soon. */
  warmUp(): Promise<void>;
  serves(path: string): boolean;
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
  close(): Promise<void>;
}

export interface HttpSetup {
  pages: Pages | undefined;
  rpcHandlers: RpcHandlers;
  /** Why a call is refused because of its token, if it is. */
  refusal: (path: string, headers: IncomingMessage['headers']) => Refusal | undefined;
  /** Metrics as Prometheus text. */
  metrics: () => Promise<string>;
  /** Why the server should get no calls, if it should not. */
  problem: () => Promise<string | undefined>;
  newBudget: () => ByteBudget;
  limits: ServerLimits;
  /** How long a client may take for its handshake and for the headers of a request. */
  handshake: number;
  tls: TlsMaterial | undefined;
  /** Only this machine can reach the server, so a Host that names another machine is an attack. */
  loopback: boolean;
  log: Log;
}

const REQUEST_TIMEOUT = 60_000;
/** How many requests of a connection may wait for the response to an earlier one. */
const MOST_PIPELINED = 50;

type Refused = [status: number, text: string];

/** The same service over plain HTTP, for curl and web pages. */
export function httpServer(setup: HttpSetup): HttpServer {
  const { tls, limits, handshake } = setup;
  const budgets = new WeakMap<Socket, ByteBudget>();
  const budgetOf = (socket: Socket) => {
    const budget = budgets.get(socket) ?? setup.newBudget();
    budgets.set(socket, budget);
    return budget;
  };
  const turns = new Turns();
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    turns.take(request.socket, response, () => {
      answer(setup, request, response, budgetOf).catch((error) => {
        setup.log.error({ err: error }, 'a request failed');
        response.destroy();
      });
    });
  };
  const options = {
    headersTimeout: handshake,
    requestTimeout: Math.max(REQUEST_TIMEOUT, handshake),
    connectionsCheckingInterval: Math.max(100, Math.min(1_000, handshake / 4)),
  };
  const server = tls
    ? createSecureServer({ ...tls, ...options, handshakeTimeout: handshake }, handle)
    : createServer(options, handle);
  server.maxConnections = limits.connections;
  return server as HttpServer;
}

/**
 * Serves the requests of a connection one after the other, so that a client that sends many and reads no response costs only one.
 */
class Turns {
  /** The requests that wait on each connection that is being served. */
  readonly #waiting = new WeakMap<Socket, (() => void)[]>();

  take(socket: Socket, response: ServerResponse, serve: () => void): void {
    response.once('close', () => this.#next(socket));
    const waiting = this.#waiting.get(socket);
    if (!waiting) {
      this.#waiting.set(socket, []);
      serve();
    } else if (waiting.length < MOST_PIPELINED) waiting.push(serve);
    else socket.destroy();
  }

  #next(socket: Socket): void {
    const serve = socket.destroyed ? undefined : this.#waiting.get(socket)?.shift();
    if (serve) serve();
    else this.#waiting.delete(socket);
  }
}

async function answer(
  setup: HttpSetup,
  request: IncomingMessage,
  response: ServerResponse,
  budgetOf: (socket: Socket) => ByteBudget,
): Promise<void> {
  request.on('error', () => {});
  response.on('error', () => {});
  const path = pathOf(request.url);
  if (path === undefined) return say(response, 400, 'invalid request path');
  const wrong = foreign(setup, request);
  if (wrong) return say(response, ...wrong);
  if (path === '/healthz') return say(response, 200, 'ok');
  if (path === '/readyz') {
    const problem = await setup.problem();
    return say(response, problem === undefined ? 200 : 503, problem === undefined ? 'ready' : `not ready: ${problem}`);
  }
  if (setup.pages?.serves(path) && !isForPrograms(path, request)) return setup.pages.serve(request, response);
  const refused = setup.refusal(path, request.headers);
  if (refused) {
    if (refused.http === 401) response.setHeader('www-authenticate', 'Bearer');
    return say(response, refused.http, refused.text);
  }
  const base = `${setup.tls ? 'https' : 'http'}://${request.headers.host}`;
  if (path === '/metrics') return scrape(setup, request, response);
  if (path === '/' && (request.method === 'GET' || request.method === 'HEAD'))
    return say(response, 200, indexText(base));
  if (!setup.rpcHandlers.handles(path)) return say(response, 404, notFoundText(path, base));
  if (request.method !== 'POST') {
    response.setHeader('allow', 'POST');
    return say(response, 405, `calls must be POST requests with JSON: see GET ${base}/`);
  }
  if (!isKnownType(request.headers['content-type'])) {
    const example = `curl -H 'content-type: application/json' -d '{}' ${base}${path}`;
    return say(response, 415, `the content type must be application/json: ${example}`);
  }
  const { headers, httpVersion, method, socket } = request;
  const incoming = { path, method, httpVersion, headers, body: request, budget: budgetOf(socket) };
  return setup.rpcHandlers.handle(incoming, response);
}

/** At the root, programs such as curl get a text with the calls, and browsers the dashboard. */
function isForPrograms(path: string, { headers }: IncomingMessage): boolean {
  return path === '/' && !/\btext\/html\b/.test(headers.accept ?? '');
}

/** What the calls understand: JSON and protocol buffers, plain or in the framings of gRPC-Web and Connect. */
function isKnownType(type: string | undefined): boolean {
  return /^\s*application\/(json|proto|(connect|grpc|grpc-web)(\+(json|proto))?)\s*(;|$)/i.test(type ?? '');
}

async function scrape(setup: HttpSetup, { method }: IncomingMessage, response: ServerResponse): Promise<void> {
  if (method !== 'GET' && method !== 'HEAD') return say(response, 405, 'metrics are read with GET');
  try {
    say(response, 200, await setup.metrics(), PROMETHEUS_TYPE);
  } catch (error) {
    say(response, 503, `the store does not answer: ${(error as Error).message}`);
  }
}

/** Refuses requests from other sites' pages, which must not act on behalf of their visitors. */
function foreign({ loopback }: HttpSetup, request: IncomingMessage): Refused | undefined {
  const { host = '', origin } = request.headers;
  const authority = authorityOf(host);
  if (!authority) return [400, 'the Host header is not HOST or HOST:PORT'];
  if (loopback && !isOfThisMachine(authority)) return [403, 'the Host header names another machine'];
  if (origin !== undefined && origin.replace(/^https?:\/\//, '') !== host)
    return [403, 'the Origin header names another site'];
  return undefined;
}

function say(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.statusCode = status;
  response.setHeader('content-type', type);
  response.setHeader('x-content-type-options', 'nosniff');
  response.end(text.endsWith('\n') ? text : `${text}\n`);
}
