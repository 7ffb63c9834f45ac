import { ConnectError, type ConnectRouter, type Interceptor } from '@connectrpc/connect';
import { Crore } from '../proto/crore/v1/crore_pb.js';
import { Lakh } from '../proto/lakh/lakh_pb.js';
import type { ServerContext } from './context.js';
import { croreService } from './crore/service.js';
import { type MessageLimits, UnaryCalls } from './crore/unary-calls.js';
import { WorkCall } from './crore/work-call.js';
import { WorkStream } from './crore/work-stream.js';
import type { Health } from './health.js';
import type { Call } from './http2/call.js';
import { Reflection } from './reflection.js';
import { connectErrorOf, statusOf } from './status.js';

const WORK = '/crore.v1.Crore/Work';

/**
 * The calls of crore.v1, health and reflection. A library serves them, but for workers' streams and single calls of crore.v1 in
 * plain gRPC.
 */
export class Routes {
  readonly #streams = new Set<WorkStream>();
  readonly #service: ReturnType<typeof croreService>;
  readonly #unary: UnaryCalls;

  constructor(
    private readonly context: ServerContext,
    private readonly health: Health,
    private readonly limits: MessageLimits,
  ) {
    this.#service = croreService(context);
    this.#unary = new UnaryCalls(context, this.#service, limits);
  }

  get busy(): boolean {
    return this.#streams.size > 0;
  }

  drain(): void {
    for (const stream of this.#streams) stream.drain();
  }

  cut(): void {
    for (const stream of this.#streams) stream.cut();
  }

  /** Whether a call of plain gRPC needs no library. */
  handles(path: string): boolean {
    return path === WORK || this.#unary.handles(path);
  }

  handle(path: string, call: Call): void {
    if (path !== WORK) this.#unary.handle(path, call);
    else new WorkCall(this.context, call, this.#stream(call.headers['user-agent'] ?? ''), this.limits.read);
  }

  #stream(userAgent: string): WorkStream {
    const from = userAgent.split(/[ /]/)[0]!.replace(/[^\w.-]/g, '') || 'worker';
    const stream = new WorkStream(this.context, from, (gone) => this.#streams.delete(gone));
    this.#streams.add(stream);
    return stream;
  }

  readonly register = (router: ConnectRouter): void => {
    router.service(Crore, {
      ...this.#service,
      work: (requests, { signal, requestHeader }) =>
        this.#stream(requestHeader.get('user-agent') ?? '').serve(requests, signal),
    });
    this.health.routes(router);
    new Reflection([Lakh, Crore]).routes(router);
  };
}

/** Translates our errors into statuses by the table of errors; unexpected errors are logged and their details not sent. */
export function translating(context: Pick<ServerContext, 'log'>): Interceptor {
  const translate = (error: unknown, method: string): ConnectError => {
    if (!(error instanceof ConnectError) && statusOf(error).status === 'INTERNAL')
      context.log.error({ err: error, method }, 'a call failed');
    return connectErrorOf(error);
  };
  return (next) => async (request) => {
    const method = `${request.service.typeName}/${request.method.name}`;
    try {
      const response = await next(request);
      if (!response.stream) return response;
      const translated = (error: unknown) => translate(error, method);
      return { ...response, message: guarded(response.message, request.signal, translated) };
    } catch (error) {
      throw translate(error, method);
    }
  };
}

/** A stream cut off by its caller's deadline ends with that error, however its source reacted to the abort. */
async function* guarded<T>(
  messages: AsyncIterable<T>,
  signal: AbortSignal,
  translate: (error: unknown) => unknown,
): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw translate(error);
  }
  if (signal.aborted && signal.reason instanceof ConnectError) throw signal.reason;
}
