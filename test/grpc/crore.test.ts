import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Client, Code, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterEach, describe, expect, it } from 'vitest';
import { AddOutcome, Crore, type WorkRequestSchema, type WorkResponse } from '../../dist/proto/crore/v1/crore_pb.js';
import { State } from '../../dist/proto/crore/v1/job_pb.js';
import { Health, HealthCheckResponse_ServingStatus as Serving } from '../../dist/proto/grpc/health/v1/health_pb.js';
import { newJob } from '../support/jobs.js';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';
import { startServer, type TestServer } from './support/server.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(
  options: Parameters<typeof startServer>[0] = {},
): Promise<TestServer & { client: Client<typeof Crore> }> {
  const server = await startServer({ grace: 2_000, ...options });
  cleanups.push(() => server.close());
  return { ...server, client: createClient(Crore, createGrpcTransport({ baseUrl: `http://${server.address}` })) };
}

/** The stream of a worker, with everything it received. */
class Worker {
  readonly all: WorkResponse[] = [];
  error: unknown;
  over = false;
  #queue: MessageInitShape<typeof WorkRequestSchema>[] = [];
  #tell = () => {};
  #ended = false;
  readonly abort = new AbortController();

  constructor(client: Client<typeof Crore>) {
    void this.#run(client);
    cleanups.push(() => this.abort.abort());
  }

  send(request: MessageInitShape<typeof WorkRequestSchema>): void {
    this.#queue.push(request);
    this.#tell();
  }

  end(): void {
    this.#ended = true;
    this.#tell();
  }

  get jobs() {
    return this.all.flatMap(({ jobs }) => jobs);
  }

  get settled() {
    return this.all.flatMap(({ settled }) => settled);
  }

  get cancelled() {
    return this.all.flatMap(({ cancelled }) => cancelled);
  }

  async #run(client: Client<typeof Crore>): Promise<void> {
    try {
      for await (const message of client.work(this.#requests(), { signal: this.abort.signal })) this.all.push(message);
    } catch (error) {
      this.error = error;
    }
    this.over = true;
  }

  async *#requests() {
    for (;;) {
      while (this.#queue.length > 0) yield this.#queue.shift()!;
      if (this.#ended) return;
      await new Promise<void>((resolve) => {
        this.#tell = resolve;
      });
    }
  }
}

const json = (value: unknown) => ({ payload: { kind: { case: 'json' as const, value: JSON.stringify(value) } } });

describe('crore.v1', () => {
  it('adds with typed outcomes, gets, lists and counts', async () => {
    const { client } = await serve();
    const { results } = await client.add({
      queue: 'q',
      jobs: [{ id: 'a', ...json(1) }, { id: 'a', ...json(2) }, json(3), json(4)],
      limits: { count: 2n },
    });
    expect(results.map(({ outcome }) => outcome)).toEqual([
      AddOutcome.CREATED,
      AddOutcome.DUPLICATE,
      AddOutcome.CREATED,
      AddOutcome.FULL,
    ]);
    const { found } = await client.get({ queue: 'q', ids: ['a', 'nobody'] });
    expect(found[0]!.job).toMatchObject({ id: 'a', state: State.READY, payload: { kind: { value: '1' } } });
    expect(found[1]!.job).toBeUndefined();
    const page = await client.list({ queue: 'q', state: State.READY, limit: 1 });
    expect(page.jobs.map(({ id }) => id)).toEqual(['a']);
    expect(page.cursor).not.toBe('');
    const { queues } = await client.stats({});
    expect(queues).toMatchObject([{ name: 'q', counts: { ready: 2n } }]);
    expect(queues[0]!.oldest).toBeDefined();
  });

  it.each([
    ['an empty queue name', { queue: '', jobs: [] }, 'BAD_NAME'],
    [
      'JSON that is none',
      { queue: 'q', jobs: [{ payload: { kind: { case: 'json' as const, value: '{' } } }] },
      'BAD_PAYLOAD',
    ],
    ['a negative reservation', { queue: 'q', jobs: [{ options: { reservation: { seconds: -1n } } }] }, 'BAD_DURATION'],
    ['an unknown upstream', { queue: 'q', jobs: [{ options: { needs: [{ id: 'nobody' }] } }] }, 'UNKNOWN_UPSTREAM'],
  ])('refuses %s, and adds nothing', async (_what, request, code) => {
    const { client, store } = await serve();
    const error = await client.add(request).then(
      () => undefined,
      (refusal) => refusal,
    );
    expect(error.metadata.get('crore-code')).toBe(code);
    expect((await store.count('q')).ready).toBe(0);
  });

  it('refuses a partial token', async () => {
    const { client, store } = await serve();
    await client.add({ queue: 'q', jobs: [{ id: 'a', ...json(1) }] });
    await store.join('q', 'w', { lease: 10_000, info: '' });
    const [entry] = (await store.claim({ queue: 'q', worker: 'w', lease: 10_000 }, 1)).entries;
    const { token } = entry!.lease;
    const settle = (piece: string) =>
      client.settle({
        queue: 'q',
        settlements: [{ lease: { worker: 'w', token: piece, id: 'a' }, move: { to: { case: 'done', value: {} } } }],
      });
    for (const piece of ['', '1', token.slice(0, 10)])
      expect((await settle(piece).catch(() => ({ applied: [false] }))).applied).toEqual([false]);
    expect((await settle(token)).applied).toEqual([true]);
  });

  it('sends a worker stream as many jobs as it has credit for, and settles them by token', async () => {
    const { client, store } = await serve();
    await client.add({ queue: 'q', jobs: Array.from({ length: 5 }, (_x, i) => ({ id: `j${i}`, ...json(i) })) });
    await client.push({ queue: 'r', tasks: [Buffer.from('raw')] });
    const worker = new Worker(client);
    worker.send({ open: { queues: ['q', 'r'], name: 'tester' }, credit: 3 });
    await until('three jobs', () => worker.jobs.length === 3);
    expect((await store.count('q')).active + (await store.count('r')).active).toBe(3);
    const raw = worker.jobs.find(({ queue }) => queue === 'r');
    const mine = worker.jobs.filter(({ queue }) => queue === 'q');
    const [first, second] = mine;
    worker.send({
      settle: [
        {
          token: first!.token,
          outcome: { case: 'done', value: { result: { kind: { case: 'json', value: '"ok"' } } } },
        },
        { token: second!.token, outcome: { case: 'fail', value: { error: 'no', delay: { seconds: 3_600n } } } },
      ],
      progress: [{ token: second!.token, progress: '0.5', log: 'half' }],
      credit: 2,
    });
    await until('two replies', () => worker.settled.length === 2);
    expect(worker.settled.every(({ applied }) => applied)).toBe(true);
    worker.send({ settle: [{ token: first!.token, outcome: { case: 'release', value: {} } }] });
    await until('a stale settlement to be refused', () => worker.settled[2]?.applied === false);
    expect((await store.get('q', [first!.id]))[0]).toMatchObject({ state: 'done', result: '"ok"' });
    expect((await store.get('q', [second!.id]))[0]).toMatchObject({ state: 'scheduled', error: 'no' });
    if (raw) worker.send({ settle: [{ token: raw.token, outcome: { case: 'fatal', value: { error: 'bad' } } }] });
    worker.end();
    await until('a close to give everything back', async () => (await store.count('q')).active === 0 && worker.over);
    expect(worker.error).toBeUndefined();
  });

  it('notifies a worker stream of a cancelled job, and answers its heartbeats', async () => {
    const { client } = await serve();
    await client.add({ queue: 'q', jobs: [{ id: 'a', ...json(1) }] });
    const worker = new Worker(client);
    worker.send({ open: { queues: ['q'] }, credit: 1, heartbeat: true });
    await until('the job', () => worker.jobs.length === 1);
    expect((await client.cancel({ queue: 'q', ids: ['a'] })).cancelled).toEqual([true]);
    await until('the cancellation', () => worker.cancelled.length === 1);
    expect(worker.cancelled).toEqual([worker.jobs[0]!.token]);
    expect(worker.all.some(({ heartbeat }) => heartbeat)).toBe(true);
  });

  it('gives the jobs of a broken worker stream to others when its lease expires', async () => {
    const { client, store } = await serve({ sweep: 20 });
    await client.add({ queue: 'q', jobs: [{ id: 'a', ...json(1) }] });
    const worker = new Worker(client);
    worker.send({ open: { queues: ['q'], lease: { nanos: 600_000_000 } }, credit: 1 });
    await until('the job', () => worker.jobs.length === 1);
    worker.abort.abort();
    await until('the job to be ready again', async () => (await store.get('q', ['a']))[0]?.state === 'ready');
    expect((await store.get('q', ['a']))[0]).toMatchObject({ crashes: 1, attempt: 0 });
  });

  it('lists, retries and removes dead jobs; pauses and resumes queues', async () => {
    const { client, store } = await serve();
    await client.add({ queue: 'q', jobs: ['a', 'b', 'c'].map((id) => ({ id, ...json(1) })) });
    const worker = new Worker(client);
    worker.send({ open: { queues: ['q'] }, credit: 3 });
    await until('the jobs', () => worker.jobs.length === 3);
    worker.send({
      settle: worker.jobs.map(({ token }) => ({ token, outcome: { case: 'fatal', value: { error: 'x' } } })),
    });
    await until('the jobs to be dead', async () => (await store.count('q')).dead === 3);
    expect((await client.listDead({})).jobs.map(({ id }) => id).sort()).toEqual(['a', 'b', 'c']);
    expect((await client.removeDead({ queue: 'q', ids: ['a', 'nobody'] })).removed).toBe(1n);
    await client.pause({ queue: 'q' });
    expect((await client.retryDead({ queue: 'q' })).retried).toBe(2n);
    worker.send({ credit: 5, heartbeat: true });
    await until('the reply', () => worker.all.some(({ heartbeat }) => heartbeat));
    expect(await store.count('q')).toMatchObject({ ready: 2, active: 0, dead: 0 });
    await client.resume({ queue: 'q' });
    await until('the jobs to run', () => worker.jobs.length === 5);
  });
});

describe('crore.v1: limits and schedules', () => {
  it('adds, lists, runs and removes schedules', async () => {
    const { client, store } = await serve();
    const { schedule } = await client.schedule({
      name: 'nightly',
      queue: 'q',
      when: { case: 'cron', value: '0 4 * * *' },
      timezone: 'Europe/Berlin',
      job: { ...json({ a: 1 }), options: { attempts: 2 } },
    });
    expect(schedule).toMatchObject({ name: 'nightly', cron: '0 4 * * *', timezone: 'Europe/Berlin' });
    expect(schedule!.next).toBeDefined();
    const { result } = await client.runSchedule({ name: 'nightly' });
    expect((await store.get('q', [result!.id]))[0]).toMatchObject({ payload: '{"a":1}', spec: { attempts: 2 } });
    expect((await client.listSchedules({})).schedules.map(({ name }) => name)).toEqual(['nightly']);
    expect(await client.unschedule({ name: 'nightly' })).toMatchObject({ removed: true });
    const bad = client.schedule({ name: 'x', queue: 'q', when: { case: 'cron', value: 'never' } });
    await expect(bad).rejects.toMatchObject({ code: 3 });
    await expect(client.putSchedule({ schedule: { name: 'x', queue: 'q', definition: '{}' } })).rejects.toThrow('read');
  });

  it('sets and returns the breaker of a queue', async () => {
    const { client, store } = await serve();
    expect((await client.getBreaker({ queue: 'q' })).breaker).toBeUndefined();
    await client.setBreaker({ queue: 'q', breaker: { failures: 20n, pause: { seconds: 60n } } });
    expect((await store.settings('q')).breaker).toEqual({ failures: 20, pause: 60_000 });
    expect(await client.getBreaker({ queue: 'q' })).toMatchObject({ breaker: { failures: 20n }, failed: 0n });
    await expect(client.setBreaker({ queue: 'q', breaker: { failures: 1n } })).rejects.toThrow('breaker.pause');
    await client.setBreaker({ queue: 'q' });
    expect((await store.settings('q')).breaker).toBeUndefined();
  });

  it('sets and returns the limits of a queue', async () => {
    const { client, store } = await serve();
    const limits = {
      queue: { concurrency: 1n, rate: { count: 5n, per: { seconds: 1n } } },
      group: { concurrency: 2n },
    };
    await client.setLimits({ queue: 'q', limits });
    expect((await store.settings('q')).limits).toEqual({
      concurrency: 1,
      rate: { count: 5, per: 1_000 },
      group: { concurrency: 2 },
    });
    expect((await client.getLimits({ queue: 'q' })).limits).toMatchObject({ group: { concurrency: 2n } });
    await client.setLimits({ queue: 'q', limits: { group: { ordered: true } } });
    expect((await store.settings('q')).limits).toEqual({ group: { ordered: true } });
    expect((await client.getLimits({ queue: 'q' })).limits).toMatchObject({ group: { ordered: true } });
  });
});

describe('health, HTTP/JSON and shutdown', () => {
  it('answers health checks, and reports NOT_SERVING before it shuts down', async () => {
    const server = await serve();
    const health = createClient(Health, createGrpcTransport({ baseUrl: `http://${server.address}` }));
    expect((await health.check({})).status).toBe(Serving.SERVING);
    expect((await health.check({ service: 'lakh.Lakh' })).status).toBe(Serving.SERVING);
    await expect(health.check({ service: 'nobody' })).rejects.toThrow('unknown service');
    const seen: number[] = [];
    const watching = (async () => {
      for await (const { status } of health.watch({})) seen.push(status);
    })().catch(() => {});
    await until('the first status', () => seen.length === 1);
    await server.client.add({ queue: 'q', jobs: [json(1)] });
    const worker = new Worker(server.client);
    worker.send({ open: { queues: ['q'] }, credit: 1 });
    await until('an active job', () => worker.jobs.length === 1);
    const closing = server.close();
    await until('the NOT_SERVING status', () => seen.length === 2);
    expect(seen).toEqual([Serving.SERVING, Serving.NOT_SERVING]);
    // Active jobs can still be settled, and then the stream ends.
    worker.send({ settle: [{ token: worker.jobs[0]!.token, outcome: { case: 'done', value: {} } }] });
    await until('the reply', () => worker.settled[0]?.applied);
    await until('the stream to end', () => worker.over);
    await closing;
    await watching;
  });

  it('serves the same calls to curl', async () => {
    const { http, store } = await serve();
    const post = (call: string, body: object, headers = {}) =>
      fetch(`${http}/crore.v1.Crore/${call}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
    const added = await post('Add', { queue: 'q', jobs: [{ id: 'a', payload: { to: 'ada' } }] });
    expect(await added.json()).toEqual({ results: [{ outcome: 'created', id: 'a' }] });
    expect((await store.get('q', ['a']))[0]!.payload).toBe('{"to":"ada"}');
    expect(await (await post('Count', { queue: 'q' })).json()).toMatchObject({ counts: { ready: 1, dead: 0 } });
    const bad = await post('Add', { queue: '' });
    expect([bad.status, bad.headers.get('crore-code')]).toEqual([400, 'BAD_NAME']);
    expect((await post('Nothing', {})).status).toBe(404);
    expect((await fetch(`${http}/crore.v1.Crore/Count`)).status).toBe(405);
    expect((await post('Count', { queue: 'q' }, { origin: 'http://evil.example' })).status).toBe(403);
    expect(await (await fetch(`${http}/healthz`)).text()).toBe('ok\n');
    expect(await (await fetch(http)).text()).toContain('curl');
  });
});

describe('a server and its store', () => {
  it('is ready while the store answers, and alive in any case', async () => {
    const redis = await RedisServer.start();
    cleanups.push(() => redis.stop());
    const server = await startServer({ url: redis.url, grace: 100, timeout: 1_000 });
    cleanups.push(() => server.close());
    const health = createClient(Health, createGrpcTransport({ baseUrl: `http://${server.address}` }));
    const statusOf = async (path: string) => (await fetch(`${server.http}${path}`)).status;
    const watching = new AbortController();
    const seen: Serving[] = [];
    const watched = (async () => {
      for await (const { status } of health.watch({}, { signal: watching.signal })) seen.push(status);
    })().catch(() => {});
    expect(await statusOf('/readyz')).toBe(200);
    expect((await health.check({ service: 'lakh.Lakh' })).status).toBe(Serving.SERVING);
    await redis.down();
    await until('the server not to be ready', async () => (await statusOf('/readyz')) === 503);
    expect((await health.check({})).status).toBe(Serving.NOT_SERVING);
    expect(await statusOf('/healthz')).toBe(200);
    await redis.up();
    await until('the server to be ready again', async () => (await statusOf('/readyz')) === 200);
    await until('watchers to be notified', () => seen.length >= 3);
    expect(seen.slice(0, 3)).toEqual([Serving.SERVING, Serving.NOT_SERVING, Serving.SERVING]);
    watching.abort();
    await watched;
  });

  it('does not wait for a store that hangs', async () => {
    const redis = await RedisServer.start();
    cleanups.push(() => redis.stop());
    const server = await startServer({ url: redis.url, grace: 100 });
    cleanups.push(() => server.close());
    process.kill(redis.pid, 'SIGSTOP');
    cleanups.push(() => process.kill(redis.pid, 'SIGCONT'));
    const asked = performance.now();
    expect((await fetch(`${server.http}/readyz`)).status).toBe(503);
    expect(performance.now() - asked).toBeLessThan(9_000); // the store itself has a timeout of ten seconds
  });
});

describe('deadlines of callers', () => {
  it('beyond the maximum of a timer end nothing', async () => {
    const server = await startServer({ grace: 100 });
    cleanups.push(() => server.close());
    const client = createClient(Crore, createGrpcTransport({ baseUrl: `http://${server.address}` }));
    const stream = client
      .subscribe({ queue: 'q' }, { headers: { 'grpc-timeout': '99999999S' } })
      [Symbol.asyncIterator]();
    expect((await stream.next()).done).toBe(false);
    await client.add({ queue: 'q', jobs: [json(1)] });
    expect((await stream.next()).done).toBe(false);
  });

  it('end a stream of signals with DEADLINE_EXCEEDED', async () => {
    const server = await startServer({ grace: 100 });
    cleanups.push(() => server.close());
    const client = createClient(Crore, createGrpcTransport({ baseUrl: `http://${server.address}` }));
    const listening = (async () => {
      for await (const _one of client.subscribe({ queue: 'q' }, { headers: { 'grpc-timeout': '200m' } }));
    })();
    await expect(listening).rejects.toMatchObject({ code: Code.DeadlineExceeded });
  });
});

describe('JSON over HTTP', () => {
  it('refuses unknown fields by name, and stores nothing', async () => {
    const server = await startServer({ grace: 100 });
    cleanups.push(() => server.close());
    for (const [body, name] of [
      [{ queue: 'mails', jobs: [{ payload: 1, to: 'ada' }] }, 'to'],
      [{ queue: 'mails', jobs: [], urgent: true }, 'urgent'],
    ] as const) {
      const answer = await fetch(`${server.http}/crore.v1.Crore/Add`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      expect(answer.status).toBe(400);
      expect(await answer.text()).toContain(name);
    }
    expect((await server.store.count('mails')).ready).toBe(0);
  });
});

describe('schedules that were put together by a client', () => {
  const base = {
    rule: { every: 60_000 },
    catchUp: 'last',
    payload: { json: '1' },
    options: {},
  };

  it.each([
    ['every 0', { rule: { every: 0 } }, {}],
    ['every -1', { rule: { every: -1 } }, {}],
    ['no rule', { rule: null }, {}],
    ['a bad cron text', { rule: { cron: 'x y', timezone: 'UTC' } }, {}],
    ['an unknown way to catch up', { catchUp: 'everything' }, {}],
    ['a beginning in 1970', { catchUp: 'all' }, { since: 0 }],
    ['a next tick in 1970', { catchUp: 'all' }, { next: 0 }],
  ])('are refused with %s', async (_what, definition, times: { since?: number; next?: number }) => {
    const { client, store } = await serve();
    const now = store.now();
    const time = (ms: number) => ({ seconds: BigInt(Math.floor(ms / 1_000)), nanos: 0 });
    const schedule = {
      name: 's',
      queue: 'q',
      definition: JSON.stringify({ ...base, ...definition }),
      since: time(times.since ?? now),
      next: time(times.next ?? now + 60_000),
    };
    await expect(client.putSchedule({ schedule })).rejects.toMatchObject({ code: Code.InvalidArgument });
    expect(await store.schedules.list()).toEqual([]);
  });

  it('catch up at most the last thousand missed ticks', async () => {
    let now = 1_800_000_000_000;
    const { store } = await serve({ clock: () => now });
    const definition = JSON.stringify({ ...base, rule: { every: 1_000 }, catchUp: 'all' });
    await store.schedules.put({ name: 's', queue: 'q', definition, since: now, next: now + 1_000 });
    now += 86_400_000;
    await until('the schedule to catch up', async () => (await store.schedules.list())[0]!.next! > now);
    expect((await store.count('q')).ready).toBe(1_000);
  });
});

describe('readiness', () => {
  it('fails, with the reason, while due work of a queue with workers is not picked up', async () => {
    const server = await startServer({ grace: 100, readyMaxAge: 30 });
    cleanups.push(() => server.close());
    const ready = () => fetch(`${server.http}/readyz`);
    await server.store.add('idle', [newJob('a')]);
    await new Promise((resolve) => setTimeout(resolve, 50)); // older than the bound
    expect((await ready()).status, 'nobody works on it').toBe(200);
    const other = await startServer({ grace: 100, readyMaxAge: 30 });
    cleanups.push(() => other.close());
    await other.store.join('stuck', 'w1', { lease: 60_000, info: '{}' });
    await other.store.add('stuck', [newJob('a')]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const answer = await fetch(`${other.http}/readyz`);
    expect(answer.status).toBe(503);
    expect(await answer.text()).toMatch(
      /^not ready: queue 'stuck' has workers, but its next job has been due for \d+ s\n$/,
    );
  });
});

describe('a worker that died on an idle queue', () => {
  it('is noticed by the server, although it looks at such a queue rarely', async () => {
    const server = await startServer({ grace: 100, lease: 600, sweep: 50 });
    cleanups.push(() => server.close());
    await server.store.join('idle', 'dead', { lease: 600, info: '{}' });
    await until('its session is gone', async () => (await server.store.workers('idle')).length === 0);
  });
});
