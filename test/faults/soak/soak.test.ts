import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Lab } from '../support/lab.js';
import { Soak, type SoakSetup } from './soak.js';
import { soakReport } from './state.js';

interface Asked {
  store: SoakSetup['store'];
  jobs: number;
  minutes: number;
  resume: boolean;
  report: string;
}

/** `npm run soak` sets this. */
const asked = process.env.CRORE_SOAK ? (JSON.parse(process.env.CRORE_SOAK) as Asked) : undefined;
const stores = asked ? [asked.store] : (['sqlite', 'redis'] as const);

const SHORT = {
  jobs: 20_000,
  round: 20_000,
  pace: 2,
  limit: 60_000,
  times: { lease: 1_000, heartbeat: 200, sweep: 100 },
};

function long({ store, jobs, minutes, resume }: Asked): SoakSetup {
  const times = { lease: 3_000, heartbeat: 500, sweep: 250 };
  const file = join(tmpdir(), `crore-soak-${store}.json`);
  const say = (line: string) => void process.stdout.write(`${line}\n`);
  return {
    store,
    jobs,
    round: store === 'redis' ? 250_000 : 50_000,
    pace: 1,
    limit: minutes * 60_000,
    times,
    file,
    resume,
    say,
  };
}

describe.each(stores)('a soak on %s', (store) => {
  it(
    'loses no job and settles none twice, whatever happens to workers, producers and connections',
    async () => {
      const lab = new Lab(asked !== undefined);
      try {
        const state = await Soak.run(lab, asked ? long(asked) : { store, ...SHORT });
        if (asked) writeFileSync(asked.report, soakReport(state));
        expect(state).toMatchObject({ lost: 0, settledTwice: 0, unexplained: 0, violations: [], leftOver: [] });
        if (!asked)
          expect(state).toMatchObject({
            jobs: SHORT.jobs,
            faults: { kill: expect.any(Number), poison: expect.any(Number) },
          });
      } finally {
        await lab.close();
      }
    },
    asked ? 2 ** 31 - 1 : 60_000,
  );
});
