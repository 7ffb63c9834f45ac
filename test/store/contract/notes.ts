import { describe, expect, it } from 'vitest';
import { mustGet, newJob } from '../../support/jobs.js';
import type { Bench } from './setup.js';

/** Progress and log lines with their times. */
export function testNotes(bench: Bench): void {
  const { newQueue, joined, claim } = bench;

  async function running() {
    const queue = newQueue();
    await joined(queue);
    await bench.store.add(queue, [newJob('a')]);
    const [entry] = await claim(queue, 1);
    const record = (log?: string, progress?: string) =>
      bench.store.recordProgress(queue, entry!.lease, { log, progress });
    return { record, read: () => mustGet(bench.store, queue, 'a') };
  }

  describe('progress and log lines', () => {
    it('have the times at which they were written, and the log stays as it was written', async () => {
      const { record, read } = await running();
      const began = bench.now;
      await record('first\n\nthird\n', '10');
      bench.now += 5_000;
      await record('100 %1 of it\n');
      await record(undefined, '{"percent": 50,\n "step": "half"}');
      const job = await read();
      expect(job.log).toBe('first\n\nthird\n100 %1 of it\n');
      expect(job.logTimes).toEqual([began, began, began, began + 5_000]);
      expect(job.progress).toBe('{"percent": 50,\n "step": "half"}');
      expect(job.progressSteps).toEqual([
        { at: began, text: '10' },
        { at: began + 5_000, text: '{"percent": 50, "step": "half"}' },
      ]);
    });

    it('a line that comes in two parts is one line', async () => {
      const { record, read } = await running();
      const began = bench.now;
      await record('one ');
      bench.now += 1_000;
      await record('line\nanother\n');
      const { log, logTimes } = await read();
      expect({ log, logTimes }).toEqual({ log: 'one line\nanother\n', logTimes: [began, began + 1_000] });
    });

    it('only the last of them are kept, with whole times', async () => {
      const { record, read } = await running();
      for (let i = 0; i < 700; i++)
        await record(`${i} ${'x'.repeat(i % 97)}${'y'.repeat(100)}\n`, `"${'z'.repeat(i)}"`);
      const { log = '', logTimes = [], progressSteps = [] } = await read();
      const lines = log.split('\n').slice(0, -1);
      expect(logTimes).toHaveLength(lines.length);
      expect(log.length).toBeGreaterThan(50_000);
      expect(log.length).toBeLessThanOrEqual(65_536);
      expect(new Set(logTimes.slice(1))).toEqual(new Set([bench.now]));
      expect(lines.at(-1)).toMatch(/^699 /);
      expect(lines.slice(1).every((line) => /^\d+ x*y+$/.test(line))).toBe(true);
      expect(lines[0]).toMatch(/^\d* ?x*y*$/);
      expect(progressSteps.length).toBeGreaterThan(5);
      expect(progressSteps.length).toBeLessThan(30);
      expect(progressSteps.at(-1)).toEqual({ at: bench.now, text: `"${'z'.repeat(199)}…` });
    });
  });
}
