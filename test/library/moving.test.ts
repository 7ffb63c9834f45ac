import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { until } from '../support/wait.js';

describe.each([
  ['sqlite', () => 'sqlite::memory:'],
  ['redis', () => `${inject('redisUrl')}?prefix=moving`],
])('moving jobs of the library on %s', (_name, url) => {
  let crore: Crore;
  let queues = 0;
  beforeAll(async () => {
    crore = await open(url());
  });
  afterAll(() => crore.close());
  const pair = () => {
    queues += 1;
    return { from: crore.queue<number>(`from-${queues}`), to: crore.queue<number>(`to-${queues}`) };
  };

  it('moves all that match, in steps, and workers of the other queue run each of them once', async () => {
    const { from, to } = pair();
    await from.addMany(Array.from({ length: 1_200 }, (_x, i) => ({ payload: i, id: `j${i}`, group: `g${i % 3}` })));
    const ran: number[] = [];
    const worker = to.work(async (job) => void ran.push(job.payload), { concurrency: 10 });
    const steps: number[] = [];
    const moved = await from.move({ group: 'g1' }, to.name, { progress: (_seen, changed) => steps.push(changed) });
    expect(moved).toBe(400);
    expect(steps.length).toBeGreaterThan(1);
    await until('all of them have run', () => ran.length === 400);
    expect(new Set(ran).size).toBe(400);
    expect((await from.count()).ready).toBe(800);
    await worker.close();
  });

  it('says why a job cannot be moved', async () => {
    const { from, to } = pair();
    await to.add(1, { id: 'same' });
    await from.add(1, { id: 'same' });
    const up = await from.add(1, { id: 'up' });
    await from.add(2, { id: 'down', needs: [up.id] });
    await from.add(1, { id: 'ended' });
    await from.cancel('ended');
    await expect(from.move('never', to.name)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(from.move('same', to.name)).rejects.toMatchObject({ code: 'ID_TAKEN' });
    await expect(from.move('up', to.name)).rejects.toMatchObject({ code: 'JOB_LINKED' });
    await expect(from.move('down', to.name)).rejects.toMatchObject({ code: 'JOB_LINKED' });
    await expect(from.move('ended', to.name)).rejects.toMatchObject({ code: 'JOB_STARTED' });
    expect(await from.count()).toMatchObject({ ready: 2, blocked: 1, cancelled: 1 });
  });

  it('tells somebody who waits for the job that it is gone', async () => {
    const { from, to } = pair();
    const handle = await from.add(1, { delay: '1h' });
    const waiting = expect(handle.finished({ timeout: '20s' })).rejects.toMatchObject({ code: 'JOB_GONE' });
    await until('it is moved', async () => {
      await from.move(handle.id, to.name);
      return true;
    });
    await waiting;
  });

  it.each([
    ['x', '', 'queue name'],
    ['', 'other', 'job id'],
    ['x', 5, 'queue name'],
    [{ state: 'done' }, 'other', 'state'],
    [{ nonsense: 1 }, 'other', 'nonsense'],
  ])('move(%j, %j) is refused, naming what is wrong', async (which, to, word) => {
    const { from } = pair();
    await expect(from.move(which as never, to as never)).rejects.toMatchObject({
      code: expect.stringMatching(/^BAD_/),
      message: expect.stringContaining(word),
    });
  });

  it('refuses its own queue', async () => {
    const { from } = pair();
    await expect(from.move('x', from.name)).rejects.toMatchObject({ code: 'BAD_OPTION' });
  });
});
