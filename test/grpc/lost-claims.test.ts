import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterEach, describe, expect, it } from 'vitest';
import { Crore } from '../../dist/proto/crore/v1/crore_pb.js';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { newJob } from '../support/jobs.js';
import { Line } from '../support/proxy.js';
import { freshPostgres, freshRedis, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';
import { Lakh } from './support/lakh.js';
import { startServer } from './support/server.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A server whose connection to the store can be cut, and the same store without it. */
async function serve({ url, stop }: TestStore): Promise<{ address: string; direct: Store; line: Line }> {
  cleanups.push(stop);
  const line = await Line.to(Number(new URL(url).port));
  cleanups.push(() => line.close());
  const through = new URL(url);
  through.port = String(line.port);
  const direct = await openStore(url, { timeout: 10_000 });
  cleanups.push(() => direct.close());
  const server = await startServer({ url: through.href, grace: 0 });
  cleanups.push(() => server.close());
  return { address: server.address, direct, line };
}

/** Cuts the connection before the reply to the claim that has leased a job. */
function loseClaim(line: Line, direct: Store): Promise<unknown> {
  let lost = false;
  line.onReply = async () => {
    if (lost || (await direct.count('q')).active === 0) return true;
    lost = true;
    line.cut();
    return false;
  };
  return until('a claim to be lost', () => lost);
}

describe('a job whose claim was answered on a broken connection reaches a worker soon', () => {
  it.each([
    ['redis', freshRedis],
    ['postgres', freshPostgres],
  ] as const)('of Lakh, with a long reservation, on %s', async (_name, open) => {
    const { address, direct, line } = await serve(await open());
    const lakh = new Lakh(address);
    cleanups.push(() => lakh.close());
    const worker = lakh.join('q');
    await worker.joined();
    const lost = loseClaim(line, direct);
    await direct.add('q', [newJob('a', { spec: { reservation: 600_000 } })]);
    await lost;
    await worker.got(1);
    expect(worker.jobs.map(({ id }) => id)).toEqual(['a']);
  });

  it('of crore.v1, on redis', async () => {
    const { address, direct, line } = await serve(await freshRedis());
    const client = createClient(Crore, createGrpcTransport({ baseUrl: `http://${address}` }));
    const abort = new AbortController();
    const got: string[] = [];
    let opened = false;
    async function* requests() {
      yield { open: { queues: ['q'], name: 'w' }, credit: 5 };
      await new Promise((resolve) => abort.signal.addEventListener('abort', resolve));
    }
    const working = (async () => {
      for await (const message of client.work(requests(), { signal: abort.signal })) {
        opened ||= message.opened !== undefined;
        got.push(...message.jobs.map(({ id }) => id));
      }
    })().catch(() => {});
    cleanups.push(() => {
      abort.abort();
      return working;
    });
    await until('the stream to be open', () => opened);
    const lost = loseClaim(line, direct);
    await direct.add('q', [newJob('a')]);
    await lost;
    await until('the job', () => got.length > 0);
    expect(got).toEqual(['a']);
    expect((await direct.get('q', ['a']))[0]).toMatchObject({ state: 'active', attempt: 1, crashes: 0 });
  });
});
