import { describe, expect, it } from 'vitest';
import { STORES } from '../support/stores.js';
import { until } from '../support/wait.js';
import { objects } from './support/crore.js';
import { type Desk, setUpDesk } from './support/setup.js';

describe.each(STORES)('limits and events on %s', (_name, fresh) => {
  let { line, name, queue } = {} as Desk;
  setUpDesk('watch', fresh, (desk) => {
    ({ line, name, queue } = desk);
  });

  it('queue limits: shows the limits of a queue, replaces them as a whole, and removes them', async () => {
    await queue.push('x');
    expect((await line.run(['queue', 'limits', name])).out).toBe(`${name}  no limits\n`);
    const limits = ['--concurrency', '20', '--rate', '100/1m', '--group-concurrency', '1'];
    expect((await line.run(['queue', 'limits', name, ...limits])).out).toBe(
      `${name}  20 at once, 100 starts per 1m, 1 at once per group\n`,
    );
    expect(await queue.limits()).toEqual({
      concurrency: 20,
      rate: { count: 100, per: 60_000 },
      group: { concurrency: 1 },
    });
    expect(await line.json('queue', 'limits', name, '--group-rate', '5/1s')).toEqual([
      { queue: name, group: { rate: { count: 5, per: 1_000 } } },
    ]);
    await line.json('queue', 'limits', name, '--none');
    expect(await queue.limits()).toEqual({});
  });

  it.each([
    [['queue', 'limits', 'mails', '--rate', '100'], "--rate must be a rate such as 100/1m, not '100'"],
    [['queue', 'limits', 'mails', '--rate', '100/0s'], "--rate must be a rate such as 100/1m, not '100/0s'"],
    [['queue', 'limits', 'mails', '--rate', '0/1s'], '--rate must be a whole number'],
    [
      ['queue', 'limits', 'mails', '--concurrency', 'few'],
      "--concurrency must be a whole number, 1 to 1000000, not 'few'",
    ],
    [['queue', 'limits', 'mails', '--none', '--concurrency', '3'], 'give --none or limits, not both'],
    [['events', 'mails', '--only', 'done,gone'], "--only: unknown event type 'gone'"],
    [['events', 'mails', '--limit', '0'], '--limit must be a whole number'],
  ])('refuses crore %j', async (args, message) => {
    const { code, out, err } = await line.run(args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(message);
  });

  it('events: prints the job events of another process, continues after a position, and ends by itself', async () => {
    const watcher = line.start(['events', name, '--json', '--only', 'added,done', '--limit', '2']);
    // It is subscribed once the store records events.
    const position = await until('the store to record events', async () => {
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
      name,
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

  it('events: exits 0 after the given time, and on Ctrl-C', async () => {
    expect(await line.run(['events', 'quiet', '--for', '10ms'])).toMatchObject({ code: 0, out: '', err: '' });
    const watcher = line.start(['events', name]);
    await until('an event to be printed', async () => {
      await queue.add('probe');
      return watcher.written.out.includes('added');
    });
    watcher.signal('SIGINT');
    expect(await watcher.ended).toMatchObject({ code: 0, err: '' });
  });
});
