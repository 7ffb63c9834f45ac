import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Crore, Fatal, open } from '../../dist/index.js';
import { STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';

describe.each(STORES)('hooks of a worker on %s', (_name, fresh) => {
  let store: TestStore;
  let crore: Crore;
  const errors: string[] = [];
  beforeAll(async () => {
    store = await fresh();
    crore = await open(store.url, {
      logger: false,
      onError: (error, what) => void errors.push(`${what}: ${error.message}`),
    });
  });
  afterAll(async () => {
    await crore.close();
    await store.stop();
  });

  it('middleware runs in order around the handler, sees results and errors, and may change or replace them', async () => {
    const queue = crore.queue<number, string>('around');
    const seen: string[] = [];
    const worker = queue.work(async (job) => {
      seen.push('handler');
      if (job.payload === 2) throw new Error('no');
      return 'result';
    });
    worker
      .use(async (_job, next) => {
        seen.push('first');
        const result = await next();
        seen.push('first again');
        return `${result}!`;
      })
      .use(async (job, next) => {
        seen.push('second');
        if (job.payload === 3) return 'without the handler';
        try {
          return await next();
        } catch {
          return 'mended';
        }
      });
    expect(await (await queue.add(1)).finished()).toBe('result!');
    expect(seen).toEqual(['first', 'second', 'handler', 'first again']);
    expect(await (await queue.add(2)).finished()).toBe('mended!');
    expect(await (await queue.add(3)).finished()).toBe('without the handler!');
    await worker.close();
  });

  it('listeners hear of every attempt once the store has accepted its end', async () => {
    const queue = crore.queue<string, string>('told');
    const heard: string[] = [];
    const worker = queue.work(async (job) => {
      if (job.payload === 'dies') throw new Fatal('at once');
      if (job.payload === 'fails' && job.attempt === 1) throw new TypeError('once');
      return 'good';
    });
    worker
      .on('completed', (job, result) => void heard.push(`completed ${job.id} ${result}`))
      .on('failed', (job, error) => void heard.push(`failed ${job.id} ${(error as Error).name}`))
      .on('retrying', (job, _error, delay) => void heard.push(`retrying ${job.id} ${delay}`))
      .on('dead', (job, error) => void heard.push(`dead ${job.id} ${(error as Error).message}`))
      .on('closing', () => void heard.push('closing'));
    await queue.addMany([
      { payload: 'good', id: 'a' },
      { payload: 'fails', id: 'b', backoff: 10 },
      { payload: 'dies', id: 'c' },
    ]);
    await until('everything is told', () => heard.length >= 6);
    const { state } = (await queue.get('c'))!;
    expect(state).toBe('dead');
    await worker.close();
    expect(heard.filter((line) => line.includes(' a '))).toEqual(['completed a good']);
    expect(heard.filter((line) => line.includes(' b '))).toEqual([
      'failed b TypeError',
      'retrying b 10',
      'completed b good',
    ]);
    expect(heard.filter((line) => line.includes(' c '))).toEqual(['failed c Fatal', 'dead c at once']);
    expect(heard.at(-1)).toBe('closing');
  });

  it('drained comes each time the queue has become empty, after all its jobs', async () => {
    const queue = crore.queue<number, void>('drains');
    const heard: string[] = [];
    const worker = queue.work(async () => {}, { concurrency: 3 });
    worker.on('completed', () => void heard.push('job')).on('drained', () => void heard.push('drained'));
    await queue.addMany([1, 2, 3, 4].map((payload) => ({ payload })));
    await until('it is empty', () => heard.includes('drained'));
    expect(heard).toEqual(['job', 'job', 'job', 'job', 'drained']);
    await queue.add(5);
    await until('it is empty again', () => heard.length === 7);
    expect(heard.slice(5)).toEqual(['job', 'drained']);
    await worker.close();
  });

  it('a listener that throws or rejects harms nobody, and can be removed', async () => {
    const queue = crore.queue<number, string>('harmless');
    const worker = queue.work(async () => 'fine');
    let calls = 0;
    const counting = () => void calls++;
    worker
      .on('completed', () => {
        throw new Error('thrown by a listener');
      })
      .on('completed', (async () => {
        throw new Error('rejected by a listener');
      }) as () => void)
      .on('completed', counting);
    expect(await (await queue.add(1)).finished()).toBe('fine');
    await until('both are reported', () => errors.filter((text) => text.includes('by a listener')).length === 2);
    expect(calls).toBe(1);
    worker.off('completed', counting);
    expect(await (await queue.add(2)).finished()).toBe('fine');
    await worker.close();
    expect(calls).toBe(1);
  });

  it('bad input is named at once', () => {
    const worker = crore.queue('wrong').work(async () => {});
    expect(() => worker.on('complete' as 'closing', () => {})).toThrow('the event must be one of completed, failed');
    expect(() => worker.on('dead', 'x' as never)).toThrow('the listener must be a function');
    expect(() => worker.use(undefined as never)).toThrow('the middleware');
  });
});
