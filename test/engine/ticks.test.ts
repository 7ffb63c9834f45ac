import { describe, expect, it } from 'vitest';
import { resolveWhen, Ticks } from '../../dist/engine/schedules/schedule-ticks.js';
import { defineSchedule, firing } from '../../dist/engine/schedules/schedules.js';

const at = (text: string) => Date.parse(text);

function next(cron: string, timezone: string, from: string, count: number): string[] {
  const ticks = new Ticks(resolveWhen(cron, timezone), 0);
  const found: string[] = [];
  for (let time = at(from); found.length < count; ) {
    time = ticks.after(time)!;
    found.push(new Date(time).toISOString().slice(5, 16));
  }
  return found;
}

describe('ticks of a cron expression', () => {
  /** Berlin: 29 March 2026 02:00 becomes 03:00; 25 October 2026 03:00 becomes 02:00. New York: 8 March, 1 November. */
  it.each([
    [
      'daily, in the hour that is left out: once, when that hour would have begun',
      '30 2 * * *',
      'Europe/Berlin',
      '2026-03-27T12:00Z',
      ['03-28T01:30', '03-29T01:00', '03-30T00:30'],
    ],
    [
      'daily, in the hour that comes twice: once, the first time',
      '30 2 * * *',
      'Europe/Berlin',
      '2026-10-24T12:00Z',
      ['10-25T00:30', '10-26T01:30'],
    ],
    [
      'hourly, over the hour that is left out: every hour of the clock on the wall of UTC',
      '0 * * * *',
      'Europe/Berlin',
      '2026-03-28T23:30Z',
      ['03-29T00:00', '03-29T01:00', '03-29T02:00'],
    ],
    [
      'hourly, over the hour that comes twice: in both',
      '0 * * * *',
      'Europe/Berlin',
      '2026-10-24T23:30Z',
      ['10-25T00:00', '10-25T01:00', '10-25T02:00'],
    ],
    [
      'half-hourly, over the hour that comes twice: in both',
      '*/30 * * * *',
      'Europe/Berlin',
      '2026-10-25T00:15Z',
      ['10-25T00:30', '10-25T01:00', '10-25T01:30', '10-25T02:00'],
    ],
    [
      'daily at noon: moves with the clock on the wall',
      '0 12 * * *',
      'America/New_York',
      '2026-03-07T00:00Z',
      ['03-07T17:00', '03-08T16:00'],
    ],
    ['and back', '0 12 * * *', 'America/New_York', '2026-10-31T00:00Z', ['10-31T16:00', '11-01T17:00']],
    ['in UTC nothing moves', '30 2 * * *', 'UTC', '2026-03-28T12:00Z', ['03-29T02:30', '03-30T02:30']],
    ['the last day of a month', '0 0 L * *', 'UTC', '2028-02-01T00:00Z', ['02-29T00:00', '03-31T00:00']],
  ])('%s', (_name, cron, timezone, from, wanted) => {
    expect(next(cron, timezone, from, wanted.length)).toEqual(wanted);
  });

  it('support seconds and named expressions', () => {
    expect(new Ticks(resolveWhen('*/15 * * * * *', undefined), 0).after(at('2026-01-01T00:00:01Z'))).toBe(
      at('2026-01-01T00:00:15Z'),
    );
    expect(new Ticks(resolveWhen('@daily', undefined), 0).after(at('2026-01-01T00:00:01Z'))).toBe(
      at('2026-01-02T00:00Z'),
    );
  });

  it('include the last one before a given time, even after years', () => {
    const ticks = new Ticks(resolveWhen('* * * * * *', undefined), 0);
    expect(ticks.upTo(at('2036-01-01T00:00:00.500Z'))).toBe(at('2036-01-01T00:00:00Z'));
    expect(ticks.upTo(at('2036-01-01T00:00:00.000Z'))).toBe(at('2036-01-01T00:00:00Z'));
  });
});

describe('ticks of an interval', () => {
  it('count from the start, without drift', () => {
    const ticks = new Ticks(resolveWhen('10s', undefined), 1_003);
    expect(ticks.after(1_003)).toBe(11_003);
    expect(ticks.after(11_002)).toBe(11_003);
    expect(ticks.after(11_003)).toBe(21_003);
    expect(ticks.upTo(11_003)).toBe(11_003);
    expect(ticks.upTo(21_002)).toBe(11_003);
  });
});

describe('missed ticks', () => {
  const noon = at('2026-06-01T12:00:00Z');
  function missed(catchUp: 'skip' | 'last' | 'all', late: number, cron = '* * * * *') {
    const { text, first } = defineSchedule('s', 'q', cron, 'null', {}, { catchUp }, noon - 1);
    const schedule = { name: 's', queue: 'q', definition: text, since: noon - 1, next: first! };
    const { jobs, next: following } = firing(schedule, noon + late);
    return { ids: jobs.map((job) => job.id.slice(2, 21)), next: new Date(following!).toISOString().slice(11, 19) };
  }

  it('are distinguished from a tick that is slightly late', () => {
    expect(missed('skip', 900)).toEqual({ ids: ['2026-06-01T12:00:00'], next: '12:01:00' });
    expect(missed('skip', 30_000)).toEqual({ ids: [], next: '12:01:00' });
    expect(missed('skip', 305_000)).toEqual({ ids: ['2026-06-01T12:05:00'], next: '12:06:00' });
  });

  it('add one job, for the last of them, by default', () => {
    expect(missed('last', 3_599_000)).toEqual({ ids: ['2026-06-01T12:59:00'], next: '13:00:00' });
  });

  it('add one job each if requested, in bounded batches', () => {
    expect(missed('all', 125_000)).toEqual({
      ids: ['2026-06-01T12:00:00', '2026-06-01T12:01:00', '2026-06-01T12:02:00'],
      next: '12:03:00',
    });
    const many = missed('all', 900_000, '* * * * * *');
    expect(many.ids).toHaveLength(500);
    expect(many.next).toBe('12:08:20');
    // Of more than a thousand, the earliest are skipped.
    const tooMany = missed('all', 3_600_000, '* * * * * *');
    expect(tooMany.ids).toHaveLength(500);
    expect(tooMany.ids[0]).toBe('2026-06-01T12:43:21');
  });

  it('fire nothing twice when the clock is set back', () => {
    const { text, first } = defineSchedule('s', 'q', '10s', 'null', {}, {}, noon);
    const schedule = { name: 's', queue: 'q', definition: text, since: noon, next: first! };
    const { next: following } = firing(schedule, noon + 10_000);
    expect(following).toBe(noon + 20_000); // with the clock set back an hour, nothing fires again before this time
  });
});
