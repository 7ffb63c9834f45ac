import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { fail } from '../../dist/job/transitions.js';
import { STORES, type TestStore } from '../support/stores.js';

describe('retryFor', () => {
  const spec = { attempts: 1_000_000, backoff: { kind: 'fixed' as const, delay: 1_000 }, retryFor: 10_000 };
  const after = (ms: number, attempt = 3) =>
    fail({ attempt, crashes: 0, createdAt: 50_000, spec }, 'no', { random: () => 0, now: 50_000 + ms });

  it('schedules retries as long as the next attempt begins in time', () => {
    expect(after(9_000)).toMatchObject({ to: 'scheduled', delay: 1_000 });
    expect(after(9_001)).toMatchObject({ to: 'dead', error: 'no' });
  });

  it('ends with the attempts, if they end first', () => {
    const job = { attempt: 2, crashes: 0, createdAt: 0, spec: { ...spec, attempts: 2 } };
    expect(fail(job, 'no', { random: () => 0, now: 1 })).toMatchObject({ to: 'dead' });
  });
});

describe.each(STORES)('retryFor on %s', (_name, fresh) => {
  let store: TestStore;
  let crore: Crore;
  beforeAll(async () => {
    store = await fresh();
    crore = await open(store.url, { logger: false });
  });
  afterAll(async () => {
    await crore.close();
    await store.stop();
  });

  it('does not limit the number of attempts, and ends when the time is over', async () => {
    const queue = crore.queue<number, void>('patient');
    let runs = 0;
    const worker = queue.work(async () => {
      runs += 1;
      throw new Error('not yet');
    });
    const job = await queue.add(1, { retryFor: '2s', backoff: 20 });
    await expect(job.finished()).rejects.toMatchObject({ code: 'JOB_DEAD' });
    expect(runs).toBeGreaterThan(5);
    const late = await queue.add(2, { retryFor: 0, delay: 50 });
    await expect(late.finished()).rejects.toMatchObject({ code: 'JOB_DEAD' });
    expect((await late.get())!.attempt).toBe(1);
    await worker.close();
  });

  it('is refused if it is no duration', async () => {
    await expect(crore.queue('wrong').add(1, { retryFor: 'long' })).rejects.toThrow('retryFor');
  });
});
