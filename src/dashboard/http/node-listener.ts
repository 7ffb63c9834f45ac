import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';

const addresses = new WeakMap<Request, string>();

/** The address from which a request came, if it came through `nodeListener`. */
export function addressOf(request: Request): string | undefined {
  return addresses.get(request);
}

/** A handler as the platforms of the web have it. */
export type FetchHandler = (request: Request) => Promise<Response>;

/**
 * Makes a listener for `node:http`, or middleware for express and connect, of a fetch handler. Where middleware has cut off the path
 * under which it is mounted, the original URL is used.
 */
export function nodeListener(
  handler: FetchHandler,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    response.on('error', () => {});
    try {
      await write(await handler(toRequest(request, gone.signal)), response);
    } catch {
      // The handler answers its own errors: what comes here is a connection that is gone, or a URL that is none.
      if (!response.headersSent) response.writeHead(400);
      response.end();
    }
  };
}

function toRequest(request: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', headers, socket } = request;
  const target = (request as { originalUrl?: string }).originalUrl ?? request.url ?? '/';
  const scheme = (socket as { encrypted?: boolean }).encrypted ? 'https' : 'http';
  const url = new URL(`${scheme}://${headers.host ?? 'localhost'}${target}`);
  // What a guard in front of this has seen must be what is served.
  if (!target.startsWith('/') || url.pathname !== target.split(/[?#]/)[0]) throw new Error('a path that is not plain');
  const all = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const one of [value ?? []].flat()) if (!name.startsWith(':')) all.append(name, one);
  }
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const body = hasBody ? bodyOf(request) : null;
  const made = new Request(url, {
    method,
    headers: all,
    body,
    signal,
    ...(hasBody ? { duplex: 'half' } : {}),
  } as RequestInit);
  if (socket.remoteAddress !== undefined) addresses.set(made, socket.remoteAddress);
  return made;
}

/** Middleware such as `express.json()` may have read the body already and left its value. */
function bodyOf(request: IncomingMessage): ReadableStream<Uint8Array> | string {
  const { body } = request as { body?: unknown };
  if (request.readableEnded && body !== undefined) return JSON.stringify(body);
  return Readable.toWeb(request) as ReadableStream<Uint8Array>;
}

/** Writes no faster than the client reads; a client that goes away cancels the body. */
async function write(answer: Response, response: ServerResponse): Promise<void> {
  // What is left of a request that was refused early is not read.
  if (!response.req.complete) response.setHeader('connection', 'close');
  response.writeHead(answer.status, [...answer.headers].flat());
  if (!answer.body || response.req.method === 'HEAD') {
    await answer.body?.cancel();
    response.end();
    return;
  }
  const reader = answer.body.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  if (response.destroyed) return cancel();
  response.once('close', cancel);
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (!response.write(part.value)) await drained(response);
    if (response.destroyed) return;
  }
  response.end();
}

/** A client that reads nothing for this many milliseconds is disconnected. */
const STUCK = 60_000;

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => response.destroy(), STUCK).unref();
    const done = () => {
      clearTimeout(timer);
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}
