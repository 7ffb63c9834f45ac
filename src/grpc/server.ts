import {
  Http2ServerRequest,
  Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { createServer as createSecureServer, type TLSSocket } from 'node:tls';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { Engine } from '../engine/engine.js';
import type { Store } from '../store/store.js';
import { Heart } from '../worker/heart.js';
import { Guard } from './auth.js';
import { Bypass, CALL_WINDOW } from './bypass.js';
import { Call } from './call.js';
import { Caretaker } from './care.js';
import type { LakhPolicy, Log, ServerContext, ServerLimits } from './context.js';
import { LARGEST_ANSWER } from './crore/pages.js';
import { Health } from './health.js';
import { type Handler, httpServer } from './http.js';
import { LakhDoor } from './lakh/door.js';
import { type Address, addressOf, isLoopback, listenAll, type TlsMaterial } from './listen.js';
import { Routes, translating } from './router.js';
import { type Keepalive, Sessions } from './sessions.js';

export interface ServerSetup {
  store: Store;
  addresses: readonly Address[];
  /** Where HTTP/JSON is answered; absent: nowhere. */
  http?: readonly Address[];
  tls?: TlsMaterial;
  token?: string;
  limits: ServerLimits;
  lakh: LakhPolicy;
  lease: number;
  beat: number;
  sweep: number;
  maxCrashes: number;
  keepalive: Keepalive;
  /** How long a shutdown waits for what is in hand. */
  grace: number;
  /** How long any call to the store may take. */
  timeout: number;
  version: string;
  log: Log;
  random?: () => number;
}

const SERVICES = ['lakh.Lakh', 'crore.v1.Crore'];
const POLL = 20;

/** The job server: one store behind lakh, crore.v1 and HTTP/JSON. */
export class Server {
  readonly #setup: ServerSetup;
  readonly #context: ServerContext;
  readonly #guard: Guard;
  readonly #health = new Health(SERVICES);
  readonly #lakh: LakhDoor;
  readonly #routes: Routes;
  readonly #care: Caretaker;
  readonly #sessions: Sessions;
  readonly #servers: NetServer[] = [];
  readonly #pages: NetServer[] = [];
  readonly #sockets = new Set<Socket>();
  #adapter!: ReturnType<typeof connectNodeAdapter>;
  #closing: Promise<void> | undefined;

  private constructor(setup: ServerSetup) {
    const { store, log, random } = setup;
    const onError = (error: Error, what: string) => log.error({ err: error }, what);
    const engine = new Engine(store, { random, onError });
    this.#setup = setup;
    this.#guard = new Guard(setup.token);
    this.#sessions = new Sessions(setup.keepalive, log);
    this.#care = new Caretaker(engine, setup, log);
    this.#context = {
      engine,
      heart: new Heart(store, setup.timeout, onError),
      log,
      limits: setup.limits,
      lakh: setup.lakh,
      lease: setup.lease,
      beat: setup.beat,
      version: setup.version,
      tend: (queue) => this.#care.tend(queue),
    };
    this.#lakh = new LakhDoor(this.#context);
    this.#routes = new Routes(this.#context, this.#health);
    engine.scheduler.watch();
  }

  /** Opens all addresses; the store becomes the server's own and is closed with it. */
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
    return this.#pages.map(addressOf);
  }

  /** Not serving at once; what is in hand is finished for a while, the rest released, then all is closed. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #open(): Promise<void> {
    const { addresses, http, limits, tls } = this.#setup;
    const adapter = connectNodeAdapter({
      routes: this.#routes.register,
      interceptors: [translating(this.#context)],
      // A batch of jobs is one message here, where lakh has one job in each.
      readMaxBytes: 4 * limits.message,
      writeMaxBytes: LARGEST_ANSWER,
    });
    this.#adapter = adapter;
    this.#servers.push(...(await listenAll(addresses, () => this.#make())));
    if (!http) return;
    const make = () =>
      httpServer({
        handle: adapter as Handler,
        admits: (path, headers) => this.#guard.admits(path, headers),
        serving: () => this.#health.serving,
        tls,
        loopback: http.every(isLoopback),
      });
    this.#pages.push(...(await listenAll(http, make)));
  }

  #make(): NetServer {
    const { limits, tls, log } = this.#setup;
    const server = tls
      ? createSecureServer({ ...tls, noDelay: true, ALPNProtocols: ['h2'] }, (socket) => this.#secured(socket))
      : createServer({ noDelay: true }, (socket) => this.#converse(socket));
    server.on('tlsClientError', (error: Error) => log.warn({ why: error.message }, 'a client could not be let in'));
    server.on('connection', (socket: Socket) => this.#meet(socket));
    server.maxConnections = limits.connections;
    return server;
  }

  /** A socket that never becomes a session must not outlive the server. */
  #meet(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #secured(socket: TLSSocket): void {
    socket.disableRenegotiation();
    if (socket.alpnProtocol === 'h2') this.#converse(socket);
    else socket.destroy();
  }

  #converse(socket: Socket): void {
    const { limits } = this.#setup;
    const options: ServerOptions = {
      maxSessionMemory: 64,
      maxSessionInvalidFrames: 100,
      maxSessionRejectedStreams: 100,
      settings: {
        maxConcurrentStreams: limits.streams,
        maxHeaderListSize: limits.metadata,
        initialWindowSize: CALL_WINDOW,
      },
    };
    const bypass = new Bypass(socket);
    const session = bypass.open(options);
    this.#sessions.add(session, socket.remoteAddress ?? 'unknown');
    session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) =>
      this.#serve(bypass, stream, headers, raw),
    );
  }

  #serve(bypass: Bypass, stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: string[]): void {
    const path = String(headers[':path'] ?? '');
    const type = String(headers['content-type'] ?? '');
    const isGrpc = /^application\/grpc(\+proto)?(;|$)/.test(type);
    stream.on('error', () => {});
    // A client's end and reset that come together leave the runtime waiting for our own end, which may be stuck behind its window.
    stream.once('end', () => {
      if (stream.closed) stream.destroy();
    });
    if (!this.#guard.admits(path, headers)) {
      this.#setup.log.warn({ path: path.slice(0, 100) }, 'a call without the right token');
      new Call(stream, headers).end('UNAUTHENTICATED', 'a bearer token is needed, and this call has no right one');
    } else if (isGrpc && this.#closing && this.#lakh.handles(path)) {
      new Call(stream, headers).end('UNAVAILABLE', 'the server is shutting down');
    } else if (isGrpc && this.#lakh.handles(path)) {
      this.#lakh.handle(path, new Call(stream, headers, bypass));
    } else {
      // What the runtime itself does for a 'request' event, which would otherwise come for every stream.
      const request = new Http2ServerRequest(stream, headers, {}, raw);
      this.#adapter(request, new Http2ServerResponse(stream));
    }
  }

  async #close(): Promise<void> {
    const { grace } = this.#setup;
    this.#health.set(false);
    for (const server of [...this.#servers, ...this.#pages]) server.close();
    this.#lakh.drain();
    this.#routes.drain();
    await this.#quiet(grace);
    this.#lakh.cut();
    this.#routes.cut();
    await this.#quiet(1_000);
    await this.#lakh.close();
    await this.#release();
  }

  /** Resolves when no stream is busy any more, or after `ms`. */
  async #quiet(ms: number): Promise<void> {
    const end = performance.now() + ms;
    while ((this.#lakh.busy || this.#routes.busy) && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
  }

  async #release(): Promise<void> {
    for (const server of [...this.#servers, ...this.#pages]) server.close();
    for (const page of this.#pages) (page as { closeAllConnections?: () => void }).closeAllConnections?.();
    this.#sessions.close();
    await new Promise((resolve) => setImmediate(resolve));
    this.#sessions.destroy();
    for (const socket of this.#sockets) socket.destroy();
    await this.#care.close();
    await this.#context.heart.close();
    await this.#context.engine.close();
  }
}
