import { afterEach, describe, expect, it } from 'vitest';
import { finish } from '../../dist/job/transitions.js';
import { openStore } from '../../dist/store/open.js';
import { newJob, settlementOf } from '../support/jobs.js';
import { Line } from '../support/proxy.js';
import { startServer } from './support/server.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe('a call whose reply is lost', () => {
  it.each(['cut', 'reset'] as const)('because the connection is %s counts as done when it is repeated', async (how) => {
    const server = await startServer({ grace: 0 });
    cleanups.push(() => server.close());
    const line = await Line.to(Number(server.address.split(':')[1]));
    cleanups.push(() => line.close());
    const store = await openStore(`grpc://127.0.0.1:${line.port}`, { timeout: 10_000 });
    cleanups.push(() => store.close());
    await store.join('q', 'w', { lease: 60_000, info: '{}' });
    const loseReply = async <T>(call: () => Promise<T>, happened: () => Promise<boolean>): Promise<T> => {
      line.onReply = async () => {
        if (!(await happened())) return true;
        line.onReply = () => true;
        line[how]();
        return false;
      };
      return call();
    };
    const counts = () => server.store.count('q');
    const add = () => store.add('q', [newJob('a')]);
    expect(await loseReply(add, async () => (await counts()).ready === 1)).toEqual([{ outcome: 'created' }]);
    const { entries } = await store.claim({ queue: 'q', worker: 'w', lease: 60_000 }, 1);
    const settle = () => store.settle('q', [settlementOf(entries[0]!, finish(entries[0]!.job!))]);
    expect(await loseReply(settle, async () => (await counts()).done === 1)).toEqual([true]);
  });
});
