import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { uncertainDuring } from './attempts.js';
import { type Bounds, check } from './checker.js';
import { type Event, readHistory } from './events.js';
import { leftovers } from './leftovers.js';
import type { FinalState } from './rules.js';

/** Histories by hand: `at` counts up by ten with each line. */
class Story {
  readonly events: Event[] = [];
  #at = 0;
  #call = 0;

  line(process: string, verb: Event['verb'], phase: Event['phase'], rest: object, call = 0): this {
    this.#at += 10;
    const n = this.events.filter((event) => event.process === process).length + 1;
    this.events.push({ process, n, at: this.#at, wall: this.#at, verb, phase, call, ...rest } as Event);
    return this;
  }

  add(id: string, phase: Event['phase'] = 'ok'): this {
    const call = ++this.#call;
    this.line('producer', 'add', 'invoke', { ids: [id] }, call);
    return this.line('producer', 'add', phase, { ids: [id] }, call);
  }

  claim(process: string, id: string, token: string): this {
    const call = ++this.#call;
    this.line(process, 'claim', 'invoke', {}, call);
    return this.line(process, 'claim', 'ok', { entries: [{ id, token, attempt: 1 }] }, call);
  }

  settle(process: string, id: string, token: string, to = 'done', applied: boolean | undefined = true): this {
    const call = ++this.#call;
    const settlements = [{ id, token, to }];
    this.line(process, 'settle', 'invoke', { settlements }, call);
    return applied === undefined ? this : this.line(process, 'settle', 'ok', { settlements, applied: [applied] }, call);
  }

  run(process: string, id: string, phase: Event['phase'], call = 1): this {
    return this.line(process, 'run', phase, { id, attempt: 1 }, call);
  }

  death(victim: string): this {
    return this.line('experiment', 'death', 'note', { victim });
  }

  wait(ms: number): this {
    this.#at += ms;
    return this;
  }

  check(jobs: Record<string, string>, bounds?: Bounds): string[] {
    return check(this.events, final(jobs), bounds).violations;
  }
}

function final(jobs: Record<string, string>): FinalState {
  const counts: Record<string, number> = {};
  for (const state of Object.values(jobs)) counts[state] = (counts[state] ?? 0) + 1;
  return { jobs: Object.entries(jobs).map(([id, state]) => ({ id, state })), counts };
}

const good = () => new Story().add('a').claim('w1', 'a', 't1').settle('w1', 'a', 't1');

describe('the history checker', () => {
  it('accepts a job that was added, claimed and settled', () => {
    expect(good().check({ a: 'done' }, { allEnded: true, backWithin: 1, overlap: 0 })).toEqual([]);
  });

  it('accepts a job that was taken from a dead worker in time, and the late report that was refused', () => {
    const story = new Story().add('a').claim('w1', 'a', 't1').death('w1').wait(500);
    story.settle('w2', 'a', 't1', 'ready').claim('w2', 'a', 't2').settle('w1', 'a', 't1', 'done', false);
    story.settle('w2', 'a', 't2');
    expect(story.check({ a: 'done' }, { backWithin: 1_000 })).toEqual([]);
    expect(check(story.events, final({ a: 'done' })).figures.recovery).toMatchObject({ count: 1, p50: 540 });
  });

  it('accepts either result of an add without an answer, and of one whose process died', () => {
    const story = new Story().add('a', 'unknown').line('producer', 'add', 'invoke', { ids: ['b'] }, 99);
    expect(story.check({})).toEqual([]);
    expect(story.check({ a: 'ready', b: 'ready' })).toEqual([]);
  });

  it.each([
    ['A: 1 accepted jobs are missing: a', good(), {}],
    ['A: b is ready and was never added', good(), { a: 'done', b: 'ready' }],
    ['A: b is ready and was never added, or its add was refused', good().add('b', 'fail'), { a: 'done', b: 'ready' }],
    ['A: 1 jobs have not ended: b', good().add('b'), { a: 'done', b: 'ready' }],
    ['F: a: w1,w2 all got token t1', good().claim('w2', 'a', 't1'), { a: 'done' }],
    ['F: a: token t1 was applied 2 times', good().settle('w1', 'a', 't1'), { a: 'done' }],
    ['F: a: w2 claimed it after it had ended as done', good().claim('w2', 'a', 't2'), { a: 'done' }],
    [
      'F: a: w1 settled it as done while w2 held it',
      new Story().add('a').claim('w1', 'a', 't1').claim('w2', 'a', 't2').settle('w1', 'a', 't1'),
      { a: 'done' },
    ],
    [
      'F: a: it was ended 2 times (done,done)',
      new Story().add('a').claim('w1', 'a', 't1').settle('w1', 'a', 't1').settle('w2', 'a', 't2'),
      { a: 'done' },
    ],
    ['F: 1 jobs have ended, and nobody settled them: b', good().add('b'), { a: 'done', b: 'done' }],
    [
      'F: handlers of one job overlapped for 10 ms in 1 jobs',
      good().run('w1', 'a', 'invoke').run('w2', 'a', 'invoke').run('w1', 'a', 'ok').run('w2', 'a', 'ok'),
      { a: 'done' },
    ],
    [
      'B: a: claimed again 2020 ms after w1 died, allowed are 1000',
      new Story()
        .add('a')
        .claim('w1', 'a', 't1')
        .death('w1')
        .wait(2_000)
        .claim('w2', 'a', 't2')
        .settle('w2', 'a', 't2'),
      { a: 'done' },
    ],
    [
      'B: a: w1 died with it, and nobody has claimed it since',
      new Story().add('a').claim('w1', 'a', 't1').death('w1'),
      { a: 'active' },
    ],
    [
      'R: w1: rss 300, allowed are 200',
      good().line('w1', 'sample', 'note', { rss: 300, descriptors: 1 }),
      { a: 'done' },
    ],
    [
      'R: w1: descriptors 9, allowed are 5',
      good().line('w1', 'sample', 'note', { rss: 1, descriptors: 9 }),
      { a: 'done' },
    ],
  ] as [string, Story, Record<string, string>][])('finds: %s', (violation, story, jobs) => {
    const bounds = { allEnded: true, backWithin: 1_000, overlap: 5, rss: 200, descriptors: 5 };
    expect(story.check(jobs, bounds)).toContainEqual(expect.stringContaining(violation));
  });

  it('counts jobs that were taken from a live worker', () => {
    const story = new Story().add('a').claim('w1', 'a', 't1').settle('w2', 'a', 't1', 'ready');
    expect(check(story.events, final({ a: 'ready' })).figures.falseReaps).toBe(1);
    const dead = new Story().add('a').claim('w1', 'a', 't1').death('w1').settle('w2', 'a', 't1', 'ready');
    expect(check(dead.events, final({ a: 'ready' })).figures.falseReaps).toBe(0);
  });

  it('does not believe answers to settlements that were cut and repeated', () => {
    const story = good().claim('w2', 'a', 't2').settle('w2', 'a', 't2');
    expect(check(story.events, final({ a: 'done' })).violations).toHaveLength(2);
    const events = uncertainDuring(story.events, [[45, 56]]);
    expect(check(events, final({ a: 'done' })).violations).toEqual([]);
    expect(check(uncertainDuring(story.events, [[65, 85]]), final({ a: 'done' })).violations).toHaveLength(2);
  });

  it('finds a job in two states, and counts that are not true', () => {
    const jobs = [
      { id: 'a', state: 'done' },
      { id: 'a', state: 'ready' },
    ];
    const { violations } = check(good().events, { jobs, counts: { done: 1, ready: 0, dead: 2 } });
    expect(violations).toEqual([
      'A: a is in 2 states: done,ready',
      'A: 1 jobs are listed as ready and 0 are counted',
      'A: 2 jobs are listed and 3 are counted',
    ]);
  });

  it('finds what was left over', () => {
    expect(leftovers({ format: 1 }, { format: 1, leases: 2 })).toEqual(['leases: 2 left over']);
  });

  it('reads what a killed process has written, ignores half a line, and notices a missing one', () => {
    const dir = mkdtempSync(join(tmpdir(), 'crore-history-'));
    const line = (n: number) =>
      `${JSON.stringify({ process: 'p', n, at: n, verb: 'add', phase: 'invoke', ids: [] })}\n`;
    appendFileSync(join(dir, 'p.jsonl'), `${line(1)}${line(2)}{"process":"p","n":3,`);
    expect(readHistory(dir).map(({ n }) => n)).toEqual([1, 2]);
    appendFileSync(join(dir, 'q.jsonl'), `${line(1)}${line(3)}`);
    expect(() => readHistory(dir)).toThrow('a line is missing');
    rmSync(dir, { recursive: true });
  });
});
