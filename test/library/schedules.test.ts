import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { Program } from '../support/processes.js';
import { until } from '../support/wait.js';

const folder = mkdtempSync(join(tmpdir(), 'crore-schedules-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe.each([
  ['sqlite', () => `sqlite:${join(folder, 'schedules.db')}`],
  ['redis', () => `${inject('redisUrl')}?prefix=schedules`],
])('schedules on %s', (_name, url) => {
  let crore: Crore;
  let now = Date.parse('2026-06-01T12:00:00Z');
  beforeAll(async () => {
    crore = await open(url(), { clock: () => now, onError: () => {} });
  });
  afterAll(() => crore.close());

  it('add one job per tick, with the given payload and options', async () => {
    const queue = crore.queue<{ to: string }>('reports');
    const put = await crore.schedule('report', '0 * * * *', {
      queue: 'reports',
      payload: { to: 'ops' },
      priority: 3,
      headers: { a: 'b' },
    });
    expect(put).toEqual({
      name: 'report',
      queue: 'reports',
      cron: '0 * * * *',
      timezone: 'UTC',
      catchUp: 'last',
      next: new Date('2026-06-01T13:00:00Z'),
    });
    now = Date.parse('2026-06-01T13:00:00.005Z');
    await crore.schedule('report', '0 * * * *', {
      queue: 'reports',
      payload: { to: 'ops' },
      priority: 3,
      headers: { a: 'b' },
    });
    const job = await until('the job of the tick', async () => (await queue.list('ready')).jobs[0]);
    expect(job).toMatchObject({
      id: 'report@2026-06-01T13:00:00.000Z',
      payload: { to: 'ops' },
      priority: 3,
      headers: { a: 'b', 'crore-schedule': 'report', 'crore-tick': '2026-06-01T13:00:00.000Z' },
    });
    const [listed] = await crore.schedules();
    expect(listed).toMatchObject({
      name: 'report',
      last: new Date('2026-06-01T13:00:00Z'),
      next: new Date('2026-06-01T14:00:00Z'),
    });
    expect((await queue.count()).ready).toBe(1);
  });

  it('can be changed, run immediately and removed', async () => {
    const queue = crore.queue('changing');
    await crore.schedule('change', '1h', { queue: 'changing' });
    const changed = await crore.schedule('change', '2h', { queue: 'changing' });
    expect(changed.next).toEqual(new Date(now + 7_200_000));
    const handle = await crore.runSchedule('change');
    expect(await handle.state()).toBe('ready');
    expect((await crore.schedules()).find(({ name }) => name === 'change')).toEqual(changed);
    expect(await crore.unschedule('change')).toBe(true);
    expect(await crore.unschedule('change')).toBe(false);
    await expect(crore.runSchedule('change')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect((await queue.count()).ready).toBe(1);
  });

  it.each([
    [['bad', 'tomorrow', { queue: 'q' }], 'BAD_DURATION', 'tomorrow'],
    [['bad', '61 * * * *', { queue: 'q' }], 'BAD_OPTION', '61'],
    [['bad', '0 0 31 2 *', { queue: 'q' }], 'BAD_OPTION', 'never'],
    [['bad', '0 0 * * *', { queue: 'q' }, { timezone: 'Mars/Base' }], 'BAD_OPTION', 'Mars/Base'],
    [['bad', '10s', { queue: 'q' }, { timezone: 'UTC' }], 'BAD_OPTION', 'timezone'],
    [['bad', '1ms', { queue: 'q' }], 'BAD_OPTION', '100'],
    [['bad', '10s', { queue: '' }], 'BAD_NAME', 'queue'],
    [['bad', '10s', { queue: 'q', delay: 5 }], 'BAD_OPTION', 'delay'],
    [['bad', '10s', { queue: 'q', payload: () => 1 }], 'BAD_PAYLOAD', 'bad'],
    [['', '10s', { queue: 'q' }], 'BAD_NAME', 'schedule name'],
    [['bad', '10s', { queue: 'q' }, { catchUp: 'maybe' }], 'BAD_OPTION', 'catchUp'],
    [['bad', { cron: '* * * * *', every: '5s' }, { queue: 'q' }], 'BAD_OPTION', 'both'],
    [['bad', '2026-12-01T00:00:00', { queue: 'q' }], 'BAD_DURATION', '2026'],
  ])('are refused before anything is stored: %j', async (args, code, word) => {
    const before = await crore.schedules();
    const call = crore.schedule(...(args as Parameters<Crore['schedule']>));
    await expect(call).rejects.toMatchObject({ code, message: expect.stringContaining(word) });
    expect(await crore.schedules()).toEqual(before);
  });

  it('are refused if their jobs could never be added', async () => {
    const long = 'n'.repeat(500);
    await expect(crore.schedule(long, '1h', { queue: 'long' })).rejects.toMatchObject({ code: 'BAD_NAME' });
    const headers = { big: 'x'.repeat(16_380) };
    await expect(crore.schedule('big', '1h', { queue: 'long', headers })).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
    });
  });

  it('fire once per tick although five processes run and some are killed, without skipping any', async () => {
    const setup = { url: url(), queue: 'five', name: 'five', every: '200ms' };
    const programs = Array.from({ length: 5 }, () => new Program('scheduler', setup));
    await Promise.all(programs.map((program) => program.line('ready')));
    const runs = () => programs.flatMap((program) => program.lines).filter((line) => line.startsWith('run '));
    await until('some ticks', () => runs().length >= 5);
    await programs[0]!.end('SIGKILL');
    await programs[1]!.end('SIGKILL');
    const before = runs().length;
    await until('more ticks', () => runs().length >= before + 8);
    for (const program of programs) await program.end();
    await crore.unschedule('five');
    const ids = runs();
    expect(new Set(ids).size).toBe(ids.length);
    const ticks = ids.map((id) => Date.parse(id.split('@')[1]!)).sort((a, b) => a - b);
    expect(ticks.every((tick) => (tick - ticks[0]!) % 200 === 0)).toBe(true);
  });
});
