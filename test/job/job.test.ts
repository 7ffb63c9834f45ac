import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffDelay, DEFAULT_BACKOFF } from '../../dist/job/backoff.js';
import { milliseconds } from '../../dist/job/duration.js';
import { newId } from '../../dist/job/id.js';
import type { Backoff } from '../../dist/job/job.js';
import { DEFAULT_SPEC, decodeSpec, encodeSpec } from '../../dist/job/spec.js';
import { isLegal } from '../../dist/job/states.js';
import { die, expire, fail, finish, lose, release, snooze } from '../../dist/job/transitions.js';

describe('backoff', () => {
  it('is constant when fixed', () => {
    const backoff: Backoff = { kind: 'fixed', delay: 700 };
    expect([1, 2, 9].map((count) => backoffDelay(backoff, count, () => 0.9))).toEqual([700, 700, 700]);
  });

  it('doubles up to its cap when exponential, and jitter only shortens it', () => {
    const backoff: Backoff = { kind: 'exponential', delay: 1_000, factor: 2, cap: 5_000, jitter: 0.5 };
    expect([1, 2, 3, 4].map((count) => backoffDelay(backoff, count, () => 0))).toEqual([1_000, 2_000, 4_000, 5_000]);
    expect(backoffDelay(backoff, 2, () => 0.999)).toBeGreaterThanOrEqual(1_000);
  });

  it('follows 15 + n^4 + rand(30) * (n + 1) seconds when quartic', () => {
    const backoff: Backoff = { kind: 'quartic', base: 15_000, jitter: 30_000, cap: 86_400_000 };
    expect(backoffDelay(backoff, 1, () => 0)).toBe(16_000);
    expect(backoffDelay(backoff, 3, () => 0.5)).toBe((15 + 81 + 15 * 4) * 1_000);
    expect(backoffDelay(backoff, 2, () => 0.999)).toBe((15 + 16 + 29 * 3) * 1_000);
    expect(backoffDelay(backoff, 1_000, () => 0)).toBe(86_400_000);
  });
});

describe('durations', () => {
  it.each([
    [0, 0],
    [1_500, 1_500],
    ['250ms', 250],
    ['10s', 10_000],
    ['1.5h', 5_400_000],
    ['5m', 300_000],
    ['2 d', 172_800_000],
  ])('%j is %d milliseconds', (duration, ms) => expect(milliseconds(duration, 'x')).toBe(ms));

  it.each(['', '5', 'ten', '5y', '-5s', '5s5', Number.NaN, -1, Number.POSITIVE_INFINITY, null, {}])(
    '%j is refused, naming the option',
    (duration) => {
      expect(() => milliseconds(duration as string, 'delay')).toThrowError(
        expect.objectContaining({ code: 'BAD_DURATION', message: expect.stringContaining('delay') }),
      );
    },
  );
});

describe('ids', () => {
  it('are UUIDv7, distinct, and sort in order of creation', () => {
    const ids = Array.from({ length: 20_000 }, () => newId());
    expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(new Set(ids).size).toBe(ids.length);
    expect([...ids].sort()).toEqual(ids);
    const time = Number.parseInt(ids[0]!.replaceAll('-', '').slice(0, 12), 16);
    expect(Math.abs(Date.now() - time)).toBeLessThan(60_000);
  });

  it('keep increasing when the clock is set back', () => {
    const later = newId(Date.now() + 60_000);
    expect(newId(1_000) > later).toBe(true);
  });
});

describe('transitions', () => {
  const counted = fc.record({
    attempt: fc.integer({ min: 1, max: 8 }),
    crashes: fc.integer({ min: 0, max: 5 }),
    spec: fc.record({ attempts: fc.integer({ min: 1, max: 8 }), backoff: fc.constant(DEFAULT_BACKOFF) }),
  });

  it('lead from active to a state the table allows, with consistent counts', () => {
    fc.assert(
      fc.property(
        counted,
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.integer({ min: 1, max: 4 }),
        (job, luck, most) => {
          const random = () => luck;
          const moves = [
            finish(job),
            fail(job, 'e', { random, now: 0 }),
            die(job, 'e'),
            snooze(job, 5),
            release(job),
            lose(job, most, 'w'),
            expire(job),
          ];
          for (const move of moves) {
            expect(isLegal('active', move.to)).toBe(true);
            expect(move.attempt).toBeGreaterThanOrEqual(0);
            expect(move.attempt).toBeLessThanOrEqual(job.attempt);
            expect(move.crashes).toBeGreaterThanOrEqual(job.crashes);
          }
          expect(fail(job, 'e', { random, now: 0 }).to).toBe(job.attempt >= job.spec.attempts ? 'dead' : 'scheduled');
          expect(lose(job, most, 'w').to).toBe(job.crashes + 1 >= most ? 'dead' : 'ready');
          expect(release(job).attempt).toBe(job.attempt - 1);
        },
      ),
    );
  });
});

describe('the stored form of a job spec', () => {
  it('is empty for the defaults and round-trips for any other spec', () => {
    expect(encodeSpec(DEFAULT_SPEC)).toBe('');
    expect(decodeSpec('')).toBe(DEFAULT_SPEC);
    const spec = {
      ...DEFAULT_SPEC,
      attempts: 9,
      backoff: { kind: 'fixed' as const, delay: 5 },
      reservation: 7,
      headers: { ['__proto__']: 'x', a: 'b' },
      unique: { key: 'k', scope: 'window' as const, ttl: 5 },
      needs: [{ queue: 'q', id: 'i', on: 'finished' as const }],
    };
    expect(decodeSpec(encodeSpec(spec))).toEqual(spec);
  });
});
