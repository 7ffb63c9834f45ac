import { createRequire } from 'node:module';
import type * as otel from '@opentelemetry/api';
import type { ActiveJob } from '../worker/running.js';

/**
 * OpenTelemetry, if the application has its API installed: a producer span for each call that adds jobs, whose context travels in the
 * headers of the jobs, and a consumer span with a link to it for each attempt. Without the API nothing is loaded and nothing done.
 */
type Api = typeof otel;

let api: Api | undefined;
let isLoaded = false;

function load(): Api | undefined {
  if (isLoaded) return api;
  isLoaded = true;
  try {
    api = createRequire(import.meta.url)('@opentelemetry/api') as Api;
  } catch {
    api = undefined; // it is not installed
  }
  return api;
}

/** What the API delegates to as long as no SDK is registered. */
let nothing: unknown;

/** Jobs until the next look whether an SDK has been registered meanwhile. */
const LOOK_EVERY = 100;
let untilLook = 0;
let wasActive = false;

/** Whether an SDK is registered: without one, spans would cost a third of a job that does nothing, and looking a tenth. */
function isActive(otel: Api): boolean {
  if (untilLook-- > 0) return wasActive;
  untilLook = LOOK_EVERY;
  wasActive = hasProvider(otel);
  return wasActive;
}

function hasProvider({ ProxyTracerProvider, trace }: Api): boolean {
  nothing ??= new ProxyTracerProvider().getDelegate();
  const provider = trace.getTracerProvider();
  return (provider instanceof ProxyTracerProvider ? provider.getDelegate() : provider) !== nothing;
}

/** Whether spans are worth making. */
export function isTracing(): boolean {
  const otel = load();
  return otel !== undefined && isActive(otel);
}

type Headers = Record<string, string>;

/** Runs a call that adds `count` jobs; `run` gets the headers that carry the context of its span, if there is one. */
export async function traceAdd<T>(queue: string, count: number, run: (headers?: Headers) => Promise<T>): Promise<T> {
  const otel = load();
  if (!otel || !isActive(otel)) return run();
  const { context, propagation, trace, SpanKind } = otel;
  const span = trace.getTracer('crore').startSpan(`add ${queue}`, {
    kind: SpanKind.PRODUCER,
    attributes: { ...attributes(queue, 'send'), 'messaging.batch.message_count': count },
  });
  const within = trace.setSpan(context.active(), span);
  const headers: Headers = {};
  propagation.inject(within, headers);
  try {
    return await context.with(within, () => run(Object.keys(headers).length > 0 ? headers : undefined));
  } catch (error) {
    fail(otel, span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** A handler within a consumer span: it belongs to a trace of its own, with a link to that of the producer. */
export function traced<P, R>(handler: (job: ActiveJob<P>) => R): (job: ActiveJob<P>) => R | Promise<Awaited<R>> {
  const otel = load();
  return otel ? (job) => (isActive(otel) ? runTraced(otel, handler, job) : handler(job)) : handler;
}

/** The same for a handler that takes many jobs: one span for a batch, with a link for each of its jobs. */
export function tracedBatch<J extends ActiveJob<unknown>>(handler: (jobs: J[]) => unknown): (jobs: J[]) => unknown {
  const otel = load();
  if (!otel) return handler;
  return (jobs) => {
    if (!isActive(otel)) return handler(jobs);
    const { queue } = jobs[0]!;
    return withinSpan(otel, queue, jobs, { 'messaging.batch.message_count': jobs.length }, () => handler(jobs));
  };
}

function runTraced<P, R>(otel: Api, handler: (job: ActiveJob<P>) => R, job: ActiveJob<P>): Promise<Awaited<R>> {
  const details = {
    'messaging.message.id': job.id,
    'crore.attempt': job.attempt,
    ...(job.crashes > 0 ? { 'crore.crashes': job.crashes } : {}),
  };
  return withinSpan(otel, job.queue, [job], details, () => handler(job));
}

async function withinSpan<R>(
  otel: Api,
  queue: string,
  jobs: readonly ActiveJob<unknown>[],
  details: otel.Attributes,
  run: () => R,
): Promise<Awaited<R>> {
  const { context, ROOT_CONTEXT, trace, SpanKind } = otel;
  const span = trace.getTracer('crore').startSpan(
    `process ${queue}`,
    {
      kind: SpanKind.CONSUMER,
      attributes: { ...attributes(queue, 'process'), ...details },
      links: jobs.flatMap(({ headers }) => linkTo(otel, headers) ?? []),
    },
    ROOT_CONTEXT,
  );
  try {
    return await context.with(trace.setSpan(ROOT_CONTEXT, span), run);
  } catch (error) {
    fail(otel, span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** A link to the span that added a job. */
function linkTo({ propagation, ROOT_CONTEXT, trace }: Api, headers: Readonly<Headers>): otel.Link | undefined {
  const producer = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, headers));
  return producer && { context: producer };
}

function attributes(queue: string, operation: string): otel.Attributes {
  return {
    'messaging.system': 'crore',
    'messaging.destination.name': queue,
    'messaging.operation.type': operation,
    'messaging.operation.name': operation,
  };
}

/** Never throws: what is thrown may be anything. */
function fail({ SpanStatusCode }: Api, span: otel.Span, error: unknown): void {
  try {
    const message = error instanceof Error ? error.message : String(error);
    span.recordException(error instanceof Error ? error : message);
    span.setStatus({ code: SpanStatusCode.ERROR, message });
  } catch {
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
}
