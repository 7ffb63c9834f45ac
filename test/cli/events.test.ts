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
    expect((await line.run(['queue', 'limits', name, '--group-ordered'])).out).toBe(`${name}  in order per group\n`);
    expect(await queue.limits()).toEqual({ group: { ordered: true } });
    await line.json('queue', 'limits', name, '--none');
    expect(await queue.limits()).toEqual({});
  });

  it('queue breaker: shows, sets and removes the breaker of a queue', async () => {
    await queue.push('x');
    expect((await line.run(['queue', 'breaker', name])).out).toBe(`${name}  no breaker\n`);
    const set = await line.run(['queue', 'breaker', name, '--failures', '20', '--pause', '1m']);
    expect(set.out).toBe(`${name}  after 20 failures in a row, nothing for 1m; closed, 0 failed\n`);
    expect(await line.json('queue', 'breaker', name)).toEqual([
      { queue: name, failures: 20, pause: 60_000, failed: 0, isOpen: false },
    ]);
    expect(await line.json('queue', 'ls', name)).toMatchObject([{ queue: name, breakerOpen: false }]);
    await line.json('queue', 'breaker', name, '--none');
    expect(await queue.breaker()).toBeUndefined();
  });

  it('job move: moves jobs by id and by filter, and says which were not', async () => {
    await queue.addMany([1, 2, 3].map((n) => ({ payload: n, id: `m${n}` })));
    const to = `${name}-other`;
    const { code, out, err } = await line.run(['job', 'move', name, 'm1', 'never', '--to', to]);
    expect({ code, out }).toEqual({ code: 1, out: 'm1  moved\n' });
    expect(err).toContain("there is no job 'never'");
    expect(await line.json('job', 'move', name, '--to', to, '--state', 'ready', '--match', '2')).toEqual([
      { queue: name, to, moved: 1 },
    ]);
    expect((await line.run(['job', 'move', name, '--to', to, '--all'])).out).toBe('1 moved\n');
  });

  it.each([
    [['job', 'move', 'mails', 'x'], 'give the other queue with --to'],
    [['job', 'move', 'mails', 'x', '--to', 'mails'], "already in queue 'mails'"],
    [['job', 'move', 'mails', '--to', 'other'], 'no jobs selected'],
    [['job', 'move', 'mails', '--to', 'other', '--state', 'done'], '--state'],
    [['queue', 'breaker', 'mails', '--failures', '3'], 'a breaker needs --failures and --pause'],
    [['queue', 'breaker', 'mails', '--failures', '0', '--pause', '1m'], '--failures must be a whole number'],
    [['queue', 'breaker', 'mails', '--none', '--pause', '1m'], 'give --none or a breaker, not both'],
    [['queue', 'limits', 'mails', '--rate', '100'], "--rate must be a rate such as 100/1m, not '100'"],
    [['queue', 'limits', 'mails', '--rate', '100/0s'], "--rate must be a rate such as 100/1m, not '100/0s'"],
    [['queue', 'limits', 'mails', '--rate', '0/1s'], '--rate must be a whole number'],
    [
      ['queue', 'limits', 'mails', '--concurrency', 'few'],
      "--concurrency must be a whole number, 1 to 1000000, not 'few'",
    ],
    [
      ['queue', 'limits', 'mails', '--group-ordered', '--group-concurrency', '2'],
      'give --group-ordered or --group-concurrency, not both',
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
