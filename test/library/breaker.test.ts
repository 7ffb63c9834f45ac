import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Crore, type JobEvent, open } from '../../dist/index.js';
import { until } from '../support/wait.js';

describe.each([
  ['sqlite', () => 'sqlite::memory:'],
  ['redis', () => `${inject('redisUrl')}?prefix=breaker`],
])('the breaker of a queue on %s', (_name, url) => {
  let crore: Crore;
  let queues = 0;
  const lines: string[] = [];
  const logger = { warn: (_fields: object, message: string) => void lines.push(message), error: () => {} };
  beforeAll(async () => {
    crore = await open(url(), { logger });
  });
  afterAll(() => crore.close());

  it('stops workers after failures in a row, says so, and lets them go on once a job succeeds', async () => {
    const queue = crore.queue<number>(`stops-${++queues}`);
    await queue.setBreaker({ failures: 3, pause: '300ms' });
    expect(await queue.breaker()).toEqual({ failures: 3, pause: 300, failed: 0, isOpen: false });
    const stream = await queue.events({ types: ['breaker'] });
    const seen: (string | undefined)[] = [];
    stream.on('breaker', (event: JobEvent) => seen.push(event.breaker));
    let broken = true;
    let starts = 0;
    const fail = async () => {
      starts += 1;
      if (broken) throw new Error('the service is down');
    };
    const worker = queue.work(fail, { concurrency: 1 });
    for (let i = 0; i < 8; i++) await queue.add(i, { attempts: 1 });
    await until('it is open', async () => (await queue.breaker())?.isOpen === true);
    const view = await queue.breaker();
    expect(view?.until).toBeInstanceOf(Date);
    expect((await crore.metrics()).match(/^crore_queue_breaker_open\{queue="(stops-\d+)"\} 1$/m)?.[1]).toBe(queue.name);
    expect(starts).toBeLessThan(8);
    await until('it has opened again', async () => seen.filter((one) => one === 'open').length >= 2);
    broken = false;
    await until('all jobs have ended', async () => {
      const { done, dead } = await queue.count();
      return done + dead === 8;
    });
    await until('it is told to be closed', () => seen.includes('closed'));
    expect(lines.some((line) => line.startsWith(`the breaker of queue '${queue.name}' is open: nothing starts`))).toBe(
      true,
    );
    expect((await queue.breaker())?.isOpen).toBe(false);
    stream.close();
    await worker.close();
  });

  it('is closed by resume', async () => {
    const queue = crore.queue<number>(`resume-${++queues}`);
    await queue.setBreaker({ failures: 1, pause: '1h' });
    const handles = [await queue.add(1, { attempts: 1 }), await queue.add(2, { attempts: 1 })];
    const worker = queue.work(
      async (job) => {
        if (job.payload === 1) throw new Error('x');
      },
      { concurrency: 1 },
    );
    await expect(handles[0]!.finished({ timeout: '20s' })).rejects.toThrow();
    await until('it is open', async () => (await queue.breaker())?.isOpen === true);
    await queue.resume();
    await handles[1]!.finished({ timeout: '20s' });
    await queue.setBreaker(null);
    expect(await queue.breaker()).toBeUndefined();
    await worker.close();
  });

  it.each([
    [undefined, 'breaker'],
    [5, 'breaker'],
    [{ failures: 0, pause: '1m' }, 'breaker.failures'],
    [{ failures: 2.5, pause: '1m' }, 'breaker.failures'],
    [{ failures: 2 }, 'breaker.pause'],
    [{ failures: 2, pause: 0 }, 'breaker.pause'],
    [{ failures: 2, pause: 'soon' }, 'breaker.pause'],
    [{ failures: 2, pause: '1m', retries: 1 }, 'retries'],
  ])('setBreaker(%j) is refused, naming what is wrong', async (bad, word) => {
    const queue = crore.queue(`bad-${++queues}`);
    await expect(queue.setBreaker(bad as never)).rejects.toMatchObject({
      code: expect.stringMatching(/^BAD_/),
      message: expect.stringContaining(word),
    });
    expect(await queue.breaker()).toBeUndefined();
  });
});
