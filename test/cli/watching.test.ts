import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';
import { Line, objects } from './support/crore.js';

describe.each(STORES)('pace and events on %s', (_name, fresh) => {
  let store: TestStore;
  let line: Line;
  let crore: Crore;

  beforeAll(async () => {
    store = await fresh();
    line = new Line(store.url);
    crore = await open(store.url, { onError: () => {} });
  });
  afterAll(async () => {
    await crore.close();
    await store.stop();
  });

  it('queue pace: shows the limits of a queue, replaces them as a whole, takes them away', async () => {
    await crore.queue('mails').push('x');
    expect((await line.run(['queue', 'pace', 'mails'])).out).toBe('mails  no limits\n');
    const limits = ['--concurrency', '20', '--rate', '100/1m', '--group-concurrency', '1'];
    expect((await line.run(['queue', 'pace', 'mails', ...limits])).out).toBe(
      'mails  20 at once, 100 starts in 60000 ms, 1 at once per group\n',
    );
    expect(await crore.queue('mails').pace()).toEqual({
      concurrency: 20,
      rate: { count: 100, per: 60_000 },
      group: { concurrency: 1 },
    });
    expect(await line.json('queue', 'pace', 'mails', '--group-rate', '5/1s')).toEqual([
      { queue: 'mails', group: { rate: { count: 5, per: 1_000 } } },
    ]);
    await line.json('queue', 'pace', 'mails', '--none');
    expect(await crore.queue('mails').pace()).toEqual({});
  });

  it.each([
    [['queue', 'pace', 'mails', '--rate', '100'], "--rate must be such as 100/1m, not '100'"],
    [['queue', 'pace', 'mails', '--rate', '100/0s'], "--rate must be such as 100/1m, not '100/0s'"],
    [['queue', 'pace', 'mails', '--rate', '0/1s'], '--rate must be a whole number'],
    [
      ['queue', 'pace', 'mails', '--concurrency', 'few'],
      "--concurrency must be a whole number, 1 to 1000000, not 'few'",
    ],
    [['queue', 'pace', 'mails', '--none', '--concurrency', '3'], 'give --none or limits, not both'],
    [['events', 'mails', '--only', 'done,gone'], "--only: no event is called 'gone'"],
    [['events', 'mails', '--limit', '0'], '--limit must be a whole number'],
  ])('refuses crore %j', async (args, message) => {
    const { code, out, err } = await line.run(args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(message);
  });

  it('events: prints what happens to jobs in another process, goes on behind a position, and ends by itself', async () => {
    const queue = crore.queue('watched');
    const watcher = line.start(['events', 'watched', '--json', '--only', 'added,done', '--limit', '2']);
    // It has begun to listen once the store records.
    const position = await until('recording', async () => {
      await queue.add('probe');
      const [first] = objects<{ position: string }>(watcher.written.out);
      return first?.position;
    });
    const worker = queue.work(async () => 'ok');
    await (await queue.add('x', { id: 'a' })).finished();
    const { code } = await watcher.ended;
    expect(code).toBe(0);
    await worker.close();
    const later = await line.run([
      'events',
      'watched',
      '--after',
      position!,
      '--only',
      'done',
      '--limit',
      '1',
      '--for',
      '20s',
    ]);
    expect(later.out).toMatch(/^\S+Z {2}done +\S+\n$/);
  });

  it('events: ends well with the time it was given, and on Ctrl-C', async () => {
    expect(await line.run(['events', 'quiet', '--for', '10ms'])).toMatchObject({ code: 0, out: '', err: '' });
    const queue = crore.queue('loud');
    const watcher = line.start(['events', 'loud']);
    await until('an event', async () => {
      await queue.add('probe');
      return watcher.written.out.includes('added');
    });
    watcher.signal('SIGINT');
    expect(await watcher.ended).toMatchObject({ code: 0, err: '' });
  });
});
