import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { IncomingHttpHeaders as Http2Headers, Http2ServerResponse } from 'node:http2';
import type { Readable } from 'node:stream';
import { Code, ConnectError, type ConnectRouter, createConnectRouter, type Interceptor } from '@connectrpc/connect';
import type { UniversalHandler } from '@connectrpc/connect/protocol';
import { universalResponseToNodeResponse } from '@connectrpc/connect-node';
import type { Log } from './context.js';
import type { ByteBudget } from './http2/byte-budget.js';
import { FrameReader, HEAD } from './http2/frames.js';
import { GrowingBuffer } from './http2/growing-buffer.js';
import { LONGEST_TIMEOUT, timeoutOf } from './http2/timeout.js';
import { plainRequest, plainResponse } from './json-calls.js';
import { CallError, connectErrorOf, STATUS } from './status.js';

export interface RpcHandlersSetup {
  routes: (router: ConnectRouter) => void;
  interceptors: Interceptor[];
  /** Maximum bytes of a request message, and of a response. */
  readLimit: number;
  writeLimit: number;
  log: Log;
}

/** A request whose path and authority have been checked. */
export interface Incoming {
  path: string;
  method: string;
  httpVersion: string;
  headers: IncomingHttpHeaders | Http2Headers;
  body: Readable;
  /** Counts the bytes of its unfinished messages. */
  budget: ByteBudget;
}

const TIMEOUTS = ['grpc-timeout', 'connect-timeout-ms'];

/** Serves the calls that a library decodes and encodes: gRPC, gRPC-Web, and JSON over HTTP. */
export class RpcHandlers {
  readonly #handlers = new Map<string, UniversalHandler>();

  constructor(private readonly setup: RpcHandlersSetup) {
    const router = createConnectRouter({
      interceptors: setup.interceptors,
      readMaxBytes: setup.readLimit,
      writeMaxBytes: setup.writeLimit,
      // A small compressed message could use up all remaining memory.
      acceptCompression: [],
      // A misspelt field must not be dropped silently.
      jsonOptions: { ignoreUnknownFields: false },
    });
    setup.routes(router);
    for (const handler of router.handlers) this.#handlers.set(handler.requestPath, handler);
  }

  handles(path: string): boolean {
    return this.#handlers.has(path);
  }

  async handle(incoming: Incoming, response: ServerResponse | Http2ServerResponse): Promise<void> {
    const { path, method, httpVersion, budget } = incoming;
    const handler = this.#handlers.get(path)!;
    const cancel = new AbortController();
    const single = handler.method.methodKind === 'unary' || handler.method.methodKind === 'server_streaming';
    const messages = new Messages(incoming.body, budget, this.setup.readLimit, single);
    response.once('close', () => {
      messages.close();
      cancel.abort(new ConnectError('the client disconnected', Code.Canceled));
    });
    try {
      const header = headersOf(incoming.headers);
      const type = mediaType(header);
      const isPlain = /^application\/json\b/.test(type) && path.startsWith('/crore.v1.');
      if (isPlain) header.delete('content-length'); // the library gets another text than was sent
      const read = messages.read(/^application\/(grpc|connect\+)/.test(type));
      const body = isPlain ? refusingPlain(plainRequest(handler.method.input, read)) : read;
      // The authority has been checked and is no longer needed.
      const url = `http://localhost${path}`;
      const contextValues = undefined as never;
      const answer = await handler({ httpVersion, method, url, header, body, signal: cancel.signal, contextValues });
      const shown = isPlain ? await plainResponse(handler.method.output, answer) : answer;
      await universalResponseToNodeResponse(shown, response as ServerResponse);
    } catch (error) {
      if (!response.writableEnded && !response.headersSent) fail(response);
      else response.destroy();
      if (!cancel.signal.aborted) this.setup.log.error({ err: error, path }, 'a call failed');
    } finally {
      messages.close();
    }
  }
}

function fail(response: ServerResponse | Http2ServerResponse): void {
  response.statusCode = 500;
  (response as ServerResponse).end();
}

/** The media type of a request, in the form that the library expects: lower case, without parameters. */
function mediaType(header: Headers): string {
  const type = (header.get('content-type') ?? '').split(';')[0]!.trim().toLowerCase();
  if (type !== '') header.set('content-type', type);
  return type;
}

function headersOf(all: Incoming['headers']): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(all)) {
    if (name.startsWith(':') || value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) headers.append(name, one);
  }
  for (const name of TIMEOUTS) if (timeoutOf(headers.get(name)) > LONGEST_TIMEOUT) headers.delete(name);
  return headers;
}

/** Delivers the body of a request in whole messages, because a library that joins pieces itself joins them one by one. */
class Messages {
  readonly #whole: GrowingBuffer;
  readonly #reader: FrameReader;
  #ready: Buffer[] = [];
  /** Bytes of whole messages, counted until the call is over. */
  #held = 0;
  #closed = false;

  constructor(
    private readonly body: Readable,
    private readonly budget: ByteBudget,
    private readonly limit: number,
    /** The call has a single message, which its handler keeps until it has responded. */
    private readonly single: boolean,
  ) {
    this.#whole = new GrowingBuffer(budget);
    const rules = { limit, budget, compressed: true }; // the library refuses them with its own message
    this.#reader = new FrameReader(rules, (buffer, start, end) => this.#ready.push(buffer.subarray(start - HEAD, end)));
  }

  read(framed: boolean): AsyncGenerator<Uint8Array> {
    return framed ? this.#frames() : this.#all();
  }

  /** The call is over: nothing more is kept or counted, even if its handler never reads the rest. */
  close(): void {
    this.#closed = true;
    this.#whole.clear();
    this.#reader.close();
    this.#ready = [];
    this.budget.release(this.#held);
    this.#held = 0;
  }

  async *#frames(): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.#chunks()) {
      refusing(() => {
        this.#reader.read(chunk);
        if (this.single) for (const message of this.#ready) this.#hold(message.length);
      });
      const ready = this.#ready;
      this.#ready = [];
      yield* ready;
    }
    if (this.#reader.partial)
      throw new ConnectError('the stream ended in the middle of a message', Code.InvalidArgument);
  }

  #hold(bytes: number): void {
    this.budget.take(bytes);
    this.#held += bytes;
  }

  async *#all(): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.#chunks()) {
      refusing(() => {
        if (this.#whole.length + chunk.length > this.limit)
          throw new CallError('RESOURCE_EXHAUSTED', `the message is over the limit of ${this.limit} bytes`);
        this.#whole.append(chunk, 0, chunk.length);
      });
    }
    if (this.#whole.length > 0) yield this.#whole.bytes;
  }

  /** A call that is answered early is not cut off, so that its response gets through. */
  async *#chunks(): AsyncGenerator<Buffer> {
    for await (const chunk of this.body.iterator({ destroyOnReturn: false })) {
      if (this.#closed) return;
      yield chunk;
    }
  }
}

async function* refusingPlain(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw connectErrorOf(error);
  }
}

function refusing(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (error instanceof CallError) throw new ConnectError(error.message, STATUS[error.status] as Code);
    throw error;
  }
}
