import { spawnSync } from 'node:child_process';
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../dist/index.js';
import { startServer } from '../grpc/support/server.js';

const PARENT = `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}-01`;

describe('traces', () => {
  const exporter = new InMemorySpanExporter();
  beforeAll(() => {
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  });
  afterAll(() => {
    trace.disable();
    context.disable();
    propagation.disable();
  });

  it('link the attempts of a job to the call that added it', async () => {
    await using crore = await open('sqlite::memory:', { logger: false });
    const queue = crore.queue<string>('traced');
    let inner: string | undefined;
    queue.work(
      async (job) => {
        inner = trace.getActiveSpan()?.spanContext().spanId;
        if (job.attempt === 1) throw new TypeError('first');
      },
      { backoff: () => 1 },
    );
    const handle = await queue.add('x');
    await handle.finished({ timeout: '10s' });
    const [producer, failed, done] = exporter.getFinishedSpans();
    expect(producer).toMatchObject({ name: 'add traced', kind: SpanKind.PRODUCER });
    expect(failed).toMatchObject({ name: 'process traced', kind: SpanKind.CONSUMER });
    expect(failed!.status).toEqual({ code: SpanStatusCode.ERROR, message: 'first' });
    expect(failed!.events[0]!.name).toBe('exception');
    expect(done!.attributes).toMatchObject({ 'messaging.message.id': handle.id, 'crore.attempt': 2 });
    for (const span of [failed!, done!]) expect(span.links[0]!.context.spanId).toBe(producer!.spanContext().spanId);
    expect(inner, 'the handler runs within its span').toBe(done!.spanContext().spanId);
    expect((await handle.get())!.headers.traceparent).toContain(producer!.spanContext().traceId);
  });

  it('a batch is one span with a link for each of its jobs', async () => {
    exporter.reset();
    await using crore = await open('sqlite::memory:', { logger: false });
    const queue = crore.queue<number>('batched');
    const handles = [await queue.add(1), await queue.add(2)];
    let inner: string | undefined;
    const look = () => {
      inner = trace.getActiveSpan()?.spanContext().spanId;
    };
    queue.workBatch(look, { size: 2 });
    for (const handle of handles) await handle.finished({ timeout: '10s' });
    const [first, second, batch, ...more] = exporter.getFinishedSpans();
    expect(more).toEqual([]);
    expect(batch).toMatchObject({ name: 'process batched', kind: SpanKind.CONSUMER });
    expect(batch!.attributes['messaging.batch.message_count']).toBe(2);
    expect(batch!.links.map(({ context: { spanId } }) => spanId)).toEqual(
      [first, second].map((span) => span!.spanContext().spanId),
    );
    expect(inner, 'the handler runs within its span').toBe(batch!.spanContext().spanId);
  });

  it('go on through HTTP and gRPC: a call with a context gives it to its jobs', async () => {
    const server = await startServer({ grace: 100 });
    try {
      const add = (headers: object, job: object) =>
        fetch(`${server.http}/crore.v1.Crore/Add`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify({ queue: 'q', jobs: [job] }),
        });
      await add({ traceparent: PARENT, tracestate: 'a=b' }, { id: 'a', payload: 1 });
      await add({ traceparent: 'nonsense' }, { id: 'b', payload: 1 });
      await add({ traceparent: PARENT }, { id: 'c', payload: 1, options: { headers: { traceparent: 'own' } } });
      const found = await server.store.get('q', ['a', 'b', 'c']);
      expect(found.map((job) => job!.spec.headers)).toEqual([
        { traceparent: PARENT, tracestate: 'a=b' },
        undefined,
        { traceparent: 'own' },
      ]);
    } finally {
      await server.close();
    }
  });

  it('cost nothing without the API: it is not loaded', () => {
    const library = new URL('../../dist/index.js', import.meta.url).href;
    const code = `import { createRequire, Module } from 'node:module';
      const load = Module._load;
      Module._load = (name, ...rest) => {
        if (name === '@opentelemetry/api') throw new Error('not installed');
        return load(name, ...rest);
      };
      const { open } = await import('${library}');
      const crore = await open('sqlite::memory:');
      const queue = crore.queue('q');
      queue.work(async () => 'done');
      const job = await queue.add(1);
      console.log(await job.finished(), Object.keys((await job.get()).headers).length);
      await crore.close();`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' });
    expect({ stdout, stderr }).toEqual({ stdout: 'done 0\n', stderr: '' });
  });
});
