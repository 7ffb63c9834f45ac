import { describe, expect, it } from 'vitest';
import { isFlat, type LoadSetup, runLoad, SPARE } from './load.js';

interface Asked {
  connections: number;
  streams: number;
  minutes: number;
}

/** `npm run load` sets this. */
const asked = process.env.CRORE_LOAD ? (JSON.parse(process.env.CRORE_LOAD) as Asked) : undefined;
const SHORT: LoadSetup = {
  connections: 50,
  streams: 500,
  queues: 5,
  slowEvery: 25,
  processes: 1,
  rate: 200,
  intervals: 2,
  interval: 4_000,
};

function long({ connections, streams, minutes }: Asked): LoadSetup {
  const say = (line: string) => void process.stdout.write(`${line}\n`);
  say('| minute | jobs | p50 ms | p99 ms | server MB | descriptors | idle workers | starved workers | ended streams |');
  say('| --- | --- | --- | --- | --- | --- | --- | --- | --- |');
  const load = { connections, streams, queues: 100, slowEvery: 50, processes: 2, rate: streams / 30 };
  return { ...load, intervals: minutes, interval: 60_000, say };
}

describe('a job server under many connections and streams', () => {
  const timeout = asked ? (asked.minutes + 10) * 60_000 : 60_000;

  it(
    'serves every worker that reads, beside slow ones, and frees what they used',
    async () => {
      const setup = asked ? long(asked) : SHORT;
      const { samples, descriptors, added, alive } = await runLoad(setup);
      const last = samples.at(-1)!;
      if (asked) {
        process.stdout.write(
          `\n${added} jobs added; descriptors before ${descriptors.before}, after ${descriptors.after}\n`,
        );
        process.stdout.write(`verdict: ${isFlat(samples) ? 'flat' : 'not flat'}, ${last.starved} workers starved\n`);
      }
      expect(alive).toBe(true);
      expect(samples).toHaveLength(setup.intervals);
      expect(last).toMatchObject({ starved: 0, ended: 0 });
      expect(descriptors.after).toBeLessThanOrEqual(descriptors.before + SPARE);
      if (asked) expect(isFlat(samples)).toBe(true);
    },
    timeout,
  );
});
