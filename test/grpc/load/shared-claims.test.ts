import { once } from 'node:events';
import { connect } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { type Client, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AddRequestSchema, Crore, type WorkResponse } from '../../../dist/proto/crore/v1/crore_pb.js';
import { openStore } from '../../../dist/store/open.js';
import type { Store } from '../../../dist/store/store.js';
import { newJob } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { startServer, type TestServer } from '../support/server.js';

const WORKERS = 60;

let server: TestServer;
let store: Store;
let client: Client<typeof Crore>;
let claims = 0;

/** A worker's stream with room for one job, which it keeps. */
class IdleWorker {
  readonly received: WorkResponse[] = [];
  readonly #abort = new AbortController();
  #release = () => {};

  constructor(queue: string) {
    void this.#run(queue).catch(() => {});
  }

  get isOpen(): boolean {
    return this.received.some(({ opened }) => opened !== undefined);
  }

  get jobs() {
    return this.received.flatMap(({ jobs }) => jobs);
  }

  close(): void {
    this.#release();
    this.#abort.abort();
  }

  async #run(queue: string): Promise<void> {
    const { signal } = this.#abort;
    for await (const response of client.work(this.#requests(queue), { signal })) this.received.push(response);
  }

  async *#requests(queue: string) {
    yield { open: { queues: [queue] }, credit: 1 };
    await new Promise<void>((resolve) => {
      this.#release = resolve;
    });
  }
}

async function idleWorkers(queue: string): Promise<IdleWorker[]> {
  const workers = Array.from({ length: WORKERS }, () => new IdleWorker(queue));
  await until('all streams to be open', () => workers.every(({ isOpen }) => isOpen));
  return workers;
}

beforeAll(async () => {
  const real = await openStore('sqlite::memory:', { timeout: 10_000 });
  store = new Proxy(real, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (name === 'claim') claims += 1;
        return (value as (...all: unknown[]) => unknown).apply(target, args);
      };
    },
  });
  server = await startServer({ store, grace: 500 });
  client = createClient(Crore, createGrpcTransport({ baseUrl: `http://${server.address}` }));
});

afterAll(() => server.close());

describe('many workers of one queue', () => {
  it('make about as many claims as there are jobs, however many of them are idle', async () => {
    const workers = await idleWorkers('few');
    const before = claims;
    await store.add('few', [newJob('one')]);
    await until('the job to arrive', () => workers.some(({ jobs }) => jobs.length > 0));
    expect(claims - before).toBeLessThan(WORKERS / 3);
    for (const worker of workers) worker.close();
  });

  it('get one job each, if there is one for each and each has room for one', async () => {
    const workers = await idleWorkers('many');
    await store.add(
      'many',
      workers.map((_worker, i) => newJob(`job-${i}`)),
    );
    await until('all jobs to arrive', () => workers.every(({ jobs }) => jobs.length === 1));
    for (const worker of workers) worker.close();
  });
});

describe('a single call in plain gRPC', () => {
  const path = '/crore.v1.Crore/Add';
  const bytes = toBinary(AddRequestSchema, create(AddRequestSchema, { queue: 'single', jobs: [{}] }));

  function framed(message: Uint8Array): Buffer {
    const head = Buffer.alloc(5);
    head.writeUInt32BE(message.length, 1);
    return Buffer.concat([head, message]);
  }

  async function statusOf(body: Uint8Array): Promise<unknown> {
    const session = connect(`http://${server.address}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    let code: unknown;
    stream.on('response', (headers) => {
      code = headers['grpc-status'];
    });
    stream.on('trailers', (trailers) => {
      code = trailers['grpc-status'];
    });
    stream.resume();
    stream.end(body);
    await once(stream, 'close');
    session.close();
    return code;
  }

  it.each([
    ['one message', framed(bytes), '0'],
    ['no message', new Uint8Array(0), '3'],
    ['two messages', Buffer.concat([framed(bytes), framed(bytes)]), '3'],
    ['half a message', framed(bytes).subarray(0, 7), '3'],
    ['a message that is not protobuf', framed(Buffer.from([0xff, 0xff, 0xff])), '3'],
    [
      'a job whose queue has no name',
      framed(toBinary(AddRequestSchema, create(AddRequestSchema, { jobs: [{}] }))),
      '3',
    ],
  ])('with %s', async (_what, body, code) => {
    expect(await statusOf(body)).toBe(code);
  });
});
