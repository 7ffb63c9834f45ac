import {
  Http2ServerResponse,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { createServer as createSecureServer, type TLSSocket } from 'node:tls';
import { Engine } from '../engine/engine.js';
import type { Logger } from '../engine/logging/failure-log.js';
import { oncePerOutage } from '../engine/logging/outage-filter.js';
import { prometheusText } from '../engine/metrics/prometheus.js';
import { collect } from '../engine/metrics/snapshot.js';
import type { Store } from '../store/store.js';
import { Heartbeat } from '../worker/heartbeat/heartbeat.js';
import { type Address, addressOf, isLoopback, listenAll, type TlsMaterial } from './addresses.js';
import { TokenCheck, type Tokens } from './auth.js';
import { ClaimsByQueue } from './claims/queue-claims.js';
import type { LakhPolicy, Log, ServerContext, ServerLimits } from './context.js';
import { LARGEST_ANSWER } from './crore/pages.js';
import { Health } from './health.js';
import { httpServer, type Pages } from './http.js';
import { ByteBudget } from './http2/byte-budget.js';
import { Call } from './http2/call.js';
import { CALL_WINDOW, Connections, type Keepalive } from './http2/keepalive.js';
import { expectPreface, type Greeting } from './http2/preface.js';
import { authorityOf, pathOf } from './http2/request-target.js';
import { LakhService } from './lakh/lakh-service.js';
import { QueueSweeper } from './queue-sweeper.js';
import { Readiness } from './readiness.js';
import { Routes, translating } from './router.js';
import { RpcHandlers } from './rpc-handlers.js';

export interface ServerSetup {
  store: Store;
  addresses: readonly Address[];
  /** Addresses that serve HTTP/JSON; none if absent. */
  http?: readonly Address[];
  tls?: TlsMaterial;
  tokens?: Tokens;
  /** The pages of the HTTP port, for people; none if absent. */
  dashboard?: (engine: Engine) => Pages;
  limits: ServerLimits;
  lakh: LakhPolicy;
  lease: number;
  heartbeatEvery: number;
  sweep: number;
  maxCrashes: number;
  keepalive: Keepalive;
  /** How long a client may take for its first bytes, a TLS handshake and the headers of a request. */
  handshake: number;
  /** How long jobs may wait for a worker of the lakh protocol to read them. */
  stall: number;
  /** How long a shutdown waits for jobs and calls in progress. */
  grace: number;
  /** How long a single store call may take. */
  timeout: number;
  /** The server is not ready while a queue with workers has a due job that is older than this; 0 or absent: any age will do. */
  readyMaxAge?: number;
  version: string;
  log: Log;
  random?: () => number;
}

const SERVICES = ['lakh.Lakh', 'crore.v1.Crore'];
const POLL = 20;
/** Unfinished messages of one connection may use one part in this many of the limit for all connections. */
const CONNECTION_SHARE = 4;
/** Maximum headers of one call; their bytes are limited too. */
const MOST_HEADERS = 2_000;
/** How often, in milliseconds, to log the number of connections that do not speak HTTP/2. */
const STRANGERS_LOG_INTERVAL = 60_000;

/** Failed attempts and dead jobs have a level of their own, where the log has one. */
function jobLogger(log: Log): Logger {
  const write = (fields: object, text: string) => (log.job ? log.job(fields, text) : log.warn(fields, text));
  return { warn: write, error: write };
}

/** The job server: one store served over lakh, crore.v1 and HTTP/JSON. */
export class Server {
  readonly #setup: ServerSetup;
  readonly #context: ServerContext;
  readonly #tokenCheck: TokenCheck;
  readonly #health: Health;
  readonly #rpcHandlers: RpcHandlers;
  readonly #budget: ByteBudget;
  readonly #lakh: LakhService;
  readonly #routes: Routes;
  readonly #sweeper: QueueSweeper;
  readonly #connections: Connections;
  readonly #servers: NetServer[] = [];
  readonly #httpServers: NetServer[] = [];
  #pages: Pages | undefined;
  readonly #sockets = new Set<Socket>();
  #strangers = 0;
  #strangersLoggedAt = Number.NEGATIVE_INFINITY;
  #collecting: Promise<string> | undefined;
  #closing: Promise<void> | undefined;

  private constructor(setup: ServerSetup) {
    const { store, log, random } = setup;
    const onError = oncePerOutage((error, what) => log.error({ err: error }, what));
    const engine = new Engine(store, { random, onError, logger: jobLogger(log) });
    this.#setup = setup;
    this.#tokenCheck = new TokenCheck(setup.tokens ?? {});
    this.#connections = new Connections(setup.keepalive, log);
    this.#sweeper = new QueueSweeper(engine, setup, onError);
    this.#context = {
      engine,
      heartbeat: new Heartbeat(store, setup.timeout, onError),
      claims: new ClaimsByQueue(engine.store, log),
      log,
      limits: setup.limits,
      lakh: setup.lakh,
      lease: setup.lease,
      heartbeatEvery: setup.heartbeatEvery,
      stall: setup.stall,
      version: setup.version,
      keepSwept: (queue) => this.#sweeper.watch(queue),
    };
    const readiness = new Readiness(engine, setup.readyMaxAge ?? 0);
    this.#health = new Health(SERVICES, () => readiness.problem());
    this.#budget = new ByteBudget(setup.limits.buffered, 'this server');
    this.#lakh = new LakhService(this.#context);
    // A batch of jobs is one message here, whereas lakh has one job per message.
    const limits = { read: 4 * setup.limits.message, write: LARGEST_ANSWER };
    this.#routes = new Routes(this.#context, this.#health, limits);
    this.#rpcHandlers = new RpcHandlers({
      routes: this.#routes.register,
      interceptors: [translating(this.#context)],
      readLimit: limits.read,
      writeLimit: limits.write,
      log,
    });
    engine.scheduleRunner.watch();
  }

  /** Opens all addresses; the server takes ownership of the store and closes it with itself. */
  static async start(setup: ServerSetup): Promise<Server> {
    const server = new Server(setup);
    try {
      await server.#open();
    } catch (error) {
      await server.#release();
      throw error;
    }
    return server;
  }

  get addresses(): Address[] {
    return this.#servers.map(addressOf);
  }

  get httpAddresses(): Address[] {
    return this.#httpServers.map(addressOf);
  }

  /**
   * Reports not serving at once, gives jobs and calls in progress some time to finish, releases the rest, then closes everything.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #open(): Promise<void> {
    const { addresses, http, limits, tls, handshake, log } = this.#setup;
    this.#servers.push(...(await listenAll(addresses, () => this.#make())));
    if (!http) return;
    this.#pages = this.#setup.dashboard?.(this.#context.engine);
    await this.#pages?.warmUp();
    const make = () =>
      httpServer({
        pages: this.#pages,
        rpcHandlers: this.#rpcHandlers,
        refusal: (path, headers) => this.#tokenCheck.refusal(path, headers),
        problem: () => this.#health.problem(),
        metrics: () => this.#metrics(),
        newBudget: () => this.#newBudget(),
        loopback: http.every(isLoopback),
        ...{ tls, limits, handshake, log },
      });
    this.#httpServers.push(...(await listenAll(http, make)));
  }

  /** Looks at the queues once, however many ask at the same time. */
  #metrics(): Promise<string> {
    this.#collecting ??= collect(this.#context.engine)
      .then(prometheusText)
      .finally(() => {
        this.#collecting = undefined;
      });
    return this.#collecting;
  }

  #make(): NetServer {
    const { limits, tls, handshake, log } = this.#setup;
    const server = tls
      ? createSecureServer(
          { ...tls, noDelay: true, ALPNProtocols: ['h2'], handshakeTimeout: handshake },
          this.#shielded((socket: TLSSocket) => this.#secured(socket)),
        )
      : createServer(
          { noDelay: true },
          this.#shielded((socket: Socket) => this.#greet(socket)),
        );
    server.on('tlsClientError', (error: Error) =>
      log.warn({ why: error.message }, 'TLS handshake with a client failed'),
    );
    server.on('connection', (socket: Socket) => this.#meet(socket));
    server.maxConnections = limits.connections;
    return server;
  }

  /** An error of one connection or call ends only that one, never the process. */
  #shielded<T extends { destroy(): unknown }>(listener: (one: T, ...rest: never[]) => void): (one: T) => void {
    return (one: T, ...rest: unknown[]) => {
      try {
        listener(one, ...(rest as never[]));
      } catch (error) {
        this.#setup.log.error({ err: error }, 'a connection or call failed');
        one.destroy();
      }
    };
  }

  /** A socket that never becomes a session must not outlive the server. */
  #meet(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #secured(socket: TLSSocket): void {
    socket.disableRenegotiation();
    if (socket.alpnProtocol === 'h2') this.#greet(socket);
    else socket.destroy();
  }

  #greet(socket: Socket): void {
    const converse = this.#shielded((one: Socket) => this.#converse(one));
    expectPreface(socket, this.#setup.handshake, (greeting) => {
      if (greeting === 'http2') converse(socket);
      else this.#noteStranger(greeting);
    });
  }

  #noteStranger(greeting: Greeting): void {
    this.#strangers += 1;
    const now = performance.now();
    if (now - this.#strangersLoggedAt < STRANGERS_LOG_INTERVAL) return;
    const fields = { connections: this.#strangers, last: greeting };
    this.#setup.log.warn(fields, 'connections to the gRPC port were closed because they did not speak HTTP/2');
    this.#strangersLoggedAt = now;
    this.#strangers = 0;
  }

  #newBudget(): ByteBudget {
    const limit = Math.ceil(this.#setup.limits.buffered / CONNECTION_SHARE);
    return new ByteBudget(limit, 'this connection', this.#budget);
  }

  #converse(socket: Socket): void {
    const { limits } = this.#setup;
    const options: ServerOptions = {
      maxSessionMemory: 64,
      maxSessionInvalidFrames: 100,
      maxSessionRejectedStreams: 100,
      maxHeaderListPairs: MOST_HEADERS,
      settings: {
        maxConcurrentStreams: limits.streams,
        maxHeaderListSize: limits.metadata,
        initialWindowSize: CALL_WINDOW,
      },
    };
    const session = performServerHandshake(socket, options);
    const budget = this.#newBudget();
    this.#connections.add(session, socket.remoteAddress ?? 'unknown');
    const serve = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) =>
      this.#serve(new Call(stream, headers, raw, budget));
    session.on('stream', this.#shielded(serve));
  }

  #serve(call: Call): void {
    const { stream, headers, budget } = call;
    // If a client's end and reset arrive together, the runtime waits for our own end, which may be stuck behind the client's
    // window.
    stream.once('end', () => {
      if (stream.closed) stream.destroy();
    });
    const path = pathOf(headers[':path']);
    const authority = headers[':authority'] ?? headers.host ?? '';
    const isGrpc = /^application\/grpc(\+proto)?(;|$)/.test(String(headers['content-type'] ?? ''));
    const refused = path === undefined ? undefined : this.#tokenCheck.refusal(path, headers);
    const metadata = call.rawHeaders.reduce((sum, text) => sum + text.length, 0);
    if (metadata > this.#setup.limits.metadata)
      call.end(
        'RESOURCE_EXHAUSTED',
        `${metadata} bytes of metadata are over the limit of ${this.#setup.limits.metadata}`,
      );
    else if (path === undefined) call.end('INVALID_ARGUMENT', 'invalid call path');
    else if (!authorityOf(authority))
      call.end('INVALID_ARGUMENT', `the authority '${authority.slice(0, 80)}' is not HOST or HOST:PORT`);
    else if (refused) {
      this.#setup.log.warn({ path: path.slice(0, 100) }, `refused a call: ${refused.text}`);
      call.end(refused.status, refused.text);
    } else if (isGrpc && this.#lakh.handles(path)) {
      if (this.#closing) call.end('UNAVAILABLE', 'the server is shutting down');
      else this.#lakh.handle(path, call);
    } else if (isGrpc && this.#routes.handles(path)) this.#routes.handle(path, call);
    else if (this.#rpcHandlers.handles(path)) {
      const method = String(headers[':method']);
      const incoming = { path, method, httpVersion: '2.0', headers, body: stream, budget };
      void this.#rpcHandlers.handle(incoming, new Http2ServerResponse(stream));
    } else call.end('UNIMPLEMENTED', `unknown method ${path.slice(0, 200)}`);
  }

  async #close(): Promise<void> {
    const { grace } = this.#setup;
    this.#health.close();
    for (const server of [...this.#servers, ...this.#httpServers]) server.close();
    this.#lakh.drain();
    this.#routes.drain();
    await this.#quiet(grace);
    this.#lakh.cut();
    this.#routes.cut();
    await this.#quiet(1_000);
    await this.#lakh.close();
    await this.#release();
  }

  /** Resolves when no stream is busy, or after `ms`. */
  async #quiet(ms: number): Promise<void> {
    const end = performance.now() + ms;
    while ((this.#lakh.busy || this.#routes.busy) && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
  }

  async #release(): Promise<void> {
    for (const server of [...this.#servers, ...this.#httpServers]) server.close();
    await this.#pages?.close();
    for (const one of this.#httpServers) (one as { closeAllConnections?: () => void }).closeAllConnections?.();
    this.#connections.close();
    await new Promise((resolve) => setImmediate(resolve));
    this.#connections.destroy();
    for (const socket of this.#sockets) socket.destroy();
    await this.#sweeper.close();
    await this.#context.heartbeat.close();
    await this.#context.engine.close();
  }
}
