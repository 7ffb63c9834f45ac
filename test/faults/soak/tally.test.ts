import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readJournal, type Step, type Written } from './journals.js';
import { Journal } from './programs/journal.mjs';
import { type Fault, tally } from './tally.js';

/** Numbers of plain jobs: 100 to 109. */
const [FROM, TO] = [100, 110];
const ALL = Array.from({ length: TO - FROM }, (_x, i) => FROM + i);
const by = (worker: string, step: Step, at: number, numbers = ALL): Written => ({
  worker,
  step,
  at,
  numbers: Uint32Array.from(numbers),
});
const round = (worker: string, at: number, numbers = ALL) => [
  by(worker, 'claimed', at, numbers),
  by(worker, 'ran', at + 1, numbers),
  by(worker, 'ended', at + 2, numbers),
];
const counts = (more: object) => ({
  blocked: 0,
  scheduled: 0,
  ready: 0,
  active: 0,
  done: 10,
  dead: 0,
  cancelled: 0,
  ...more,
});
const check = (written: Written[], faults: Fault[] = [], more = {}, dead: { n: number; crashes: number }[] = []) =>
  tally(FROM, TO, written, faults, { counts: counts(more), dead });

describe('the tally of a soak', () => {
  it('accepts a round in which each job ran and ended once', () => {
    expect(check(round('a', 1))).toMatchObject({ jobs: 10, lost: 0, settledTwice: 0, repeated: 0, violations: [] });
  });

  it('sees a job that never ran', () => {
    expect(check(round('a', 1, ALL.slice(1)))).toMatchObject({ lost: 1, violations: ['1 accepted jobs never ran'] });
  });

  it('sees a job whose end was accepted from two workers', () => {
    const killed = { kind: 'kill', worker: 'a', from: 3, to: 3 };
    const twice = check([...round('a', 1), ...round('b', 4, [104])], [killed]);
    expect(twice).toMatchObject({ settledTwice: 1, unexplained: 0, violations: ['1 jobs were settled twice'] });
  });

  it('explains a repeated run by a fault of one of its workers, and by nothing else', () => {
    const written = [by('a', 'claimed', 1, [104]), by('a', 'ran', 2, [104]), ...round('b', 9_000)];
    const fault = (worker: string) => [{ kind: 'kill', worker, from: 2, to: 2 }];
    expect(check(written, fault('a'))).toMatchObject({
      repeated: 1,
      unexplained: 0,
      recovery: [8_998],
      violations: [],
    });
    expect(check(written, fault('c'))).toMatchObject({ repeated: 1, unexplained: 1 });
    expect(check(written)).toMatchObject({ violations: [expect.stringContaining('no fault')] });
  });

  it('sees a job that is dead without reason, and accepts one that three dead workers held', () => {
    const more = { done: 9, dead: 1 };
    const alive = ALL.filter((n) => n !== 104);
    const wrong = check(round('a', 1, alive), [], more, [{ n: 104, crashes: 2 }]);
    expect(wrong.violations).toContain('1 jobs are dead and should not be: 104');
    const workers = ['b', 'c', 'd'];
    const faults = workers.map((worker) => ({ kind: 'kill', worker, from: 50, to: 50 }));
    const held = workers.map((worker, i) => by(worker, 'claimed', i, [104]));
    expect(check([...held, ...round('a', 60, alive)], faults, more, [{ n: 104, crashes: 3 }])).toMatchObject({
      crashed: 1,
      violations: [],
    });
  });

  it.each([{ done: 9 }, { done: 11 }, { ready: 1 }, { cancelled: 1 }])(
    'compares with what the store counts: %o',
    (more) => {
      expect(check(round('a', 1), [], more).violations).toEqual([expect.stringContaining('the store counts')]);
    },
  );
});

describe('the journal of a worker', () => {
  it('is read up to a batch that is incomplete', () => {
    const dir = mkdtempSync(join(tmpdir(), 'crore-journal-'));
    const journal = new Journal(join(dir, 'w'));
    journal.write(1, [1, 2]);
    journal.write(2, [3]);
    const bytes = readFileSync(join(dir, 'w'));
    rmSync(dir, { recursive: true });
    const read = (all: Buffer) => readJournal('w', all).map(({ step, numbers }) => [step, [...numbers]]);
    expect(read(bytes)).toEqual([
      ['claimed', [1, 2]],
      ['ran', [3]],
    ]);
    expect(read(bytes.subarray(0, -1))).toEqual([['claimed', [1, 2]]]);
  });
});
