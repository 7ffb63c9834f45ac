import { describe, expect, it } from 'vitest';
import { EXPERIMENTS } from './experiments/all.js';
import { type Experiment, report } from './support/experiment.js';
import { Lab } from './support/lab.js';

/** `npm run faults` sets these. */
const long = process.env.CRORE_FAULTS === 'long';
const rows = new Set((process.env.CRORE_FAULT_ROWS ?? '').split(',').filter(Boolean).map(Number));

async function perform({ row, name, store, run }: Experiment): Promise<void> {
  const lab = new Lab(long);
  let failed = true;
  try {
    const { figure, violations } = await run(lab);
    failed = violations.length > 0;
    const verdict = failed ? 'FAILED' : 'ok';
    report({ row, name, store, figure: [figure, ...violations.slice(0, 3)].join('; '), verdict });
    expect(violations, figure).toEqual([]);
  } finally {
    const kept = await lab.close({ keep: failed });
    if (kept) process.stderr.write(`row ${row} on ${store}: the histories are in ${kept}\n`);
  }
}

describe('faults', () => {
  for (const experiment of EXPERIMENTS) {
    const { row, name, store, short, missing } = experiment;
    if (rows.size > 0 ? !rows.has(row) : !long && !short) continue;
    const reason = missing?.();
    const title = `row ${row}: ${name}, on ${store}`;
    if (reason === undefined) it(title, () => perform(experiment), 180_000);
    else {
      report({ row, name, store, figure: reason, verdict: 'skipped' });
      it.skip(`${title} (${reason})`, () => {});
    }
  }
});
