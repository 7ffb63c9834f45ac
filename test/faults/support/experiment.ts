import { appendFileSync } from 'node:fs';
import type { Lab } from './lab.js';

export interface Finding {
  /** The measured value, in words. */
  figure: string;
  /** What did not hold; empty is good. */
  violations: string[];
}

/** One row of the table of faults, on one store. */
export interface Experiment {
  row: number;
  name: string;
  store: string;
  /** Whether its short form runs in `npm test`: not where another test covers the same, or it takes long. */
  short: boolean;
  /** Says why it cannot run here; undefined if it can. */
  missing?: () => string | undefined;
  run(lab: Lab): Promise<Finding>;
}

export interface ReportLine {
  row: number;
  name: string;
  store: string;
  figure: string;
  verdict: 'ok' | 'FAILED' | 'skipped';
}

/** `npm run faults` prints these lines. */
export function report(line: ReportLine): void {
  const file = process.env.CRORE_FAULT_REPORT;
  if (file) appendFileSync(file, `${JSON.stringify(line)}\n`);
}

/** The same experiment on several stores. */
export function onEach(
  stores: readonly string[],
  experiment: Omit<Experiment, 'store' | 'run'> & { run: (lab: Lab, store: string) => Promise<Finding> },
): Experiment[] {
  return stores.map((store) => ({ ...experiment, store, run: (lab) => experiment.run(lab, store) }));
}
