import type { Counts } from '../../../dist/store/store.js';
import { ENDED_BY_ITSELF, MAX_CRASHES } from './crew.js';
import type { Written } from './journals.js';
import { endsDead, kindOf } from './programs/plan.mjs';

/** Something that was done to one worker, or to all of them, in this time. */
export interface Fault {
  kind: string;
  worker?: string;
  from: number;
  to: number;
}

export interface Tally {
  jobs: number;
  lost: number;
  settledTwice: number;
  /** Runs beyond those that are planned, and those of them that no fault explains. */
  repeated: number;
  unexplained: number;
  /** Dead though not planned: held by as many dead workers as a job may crash. */
  crashed: number;
  /** For jobs that a killed worker held: milliseconds until they were claimed again. */
  recovery: number[];
  violations: string[];
}

interface End {
  counts: Counts;
  /** The jobs that are dead, and how many workers died with them as the store says. */
  dead: readonly { n: number; crashes: number }[];
}

/** A worker notices a fault late, and its journal tells of what was sent before it. */
const AROUND = 5_000;

/** Checks a round: jobs with numbers from `from` to `to`, all accepted. Memory: some bytes for each of them. */
export function tally(
  from: number,
  to: number,
  written: readonly Written[],
  faults: readonly Fault[],
  end: End,
): Tally {
  const jobs = to - from;
  const seen = follow(from, jobs, written, faults);
  const violations: string[] = [];
  const wanted = Array.from({ length: jobs }, (_x, i) => from + i).filter(endsDead);
  const dead = new Set(end.dead.map(({ n }) => n));
  let lost = 0;
  let settledTwice = 0;
  for (let i = 0; i < jobs; i++) {
    if (seen.ends[i]! > 1) settledTwice += 1;
    if (seen.runs[i] === 0 && !dead.has(from + i)) lost += 1;
  }
  const complain = (count: number, text: string) => count > 0 && violations.push(`${count} ${text}`);
  complain(lost, 'accepted jobs never ran');
  complain(settledTwice, 'jobs were settled twice');
  complain(wanted.filter((n) => !dead.has(n)).length, 'jobs should be dead and are not');
  // A claim whose answer was lost is in no journal: one dead worker has to be known, the store knows of all.
  const isCrashed = ({ n, crashes }: End['dead'][number]) => crashes >= MAX_CRASHES && seen.deaths[n - from]! > 0;
  const unplanned = end.dead.filter(({ n }) => !endsDead(n));
  const crashed = unplanned.filter(isCrashed).length;
  const wrong = unplanned.filter((job) => !isCrashed(job)).map(({ n }) => n);
  complain(wrong.length, `jobs are dead and should not be: ${wrong.slice(0, 5)}`);
  complain(faults.filter(({ kind }) => kind === ENDED_BY_ITSELF).length, 'workers ended by themselves');
  complain(seen.unexplained, 'runs are repeated, and no fault of their workers explains it');
  const { ready, active, scheduled, blocked, done, dead: counted, cancelled } = end.counts;
  const expected = { waiting: 0, done: jobs - wanted.length - crashed, dead: wanted.length + crashed, cancelled: 0 };
  const found = { waiting: ready + active + scheduled + blocked, done, dead: counted, cancelled };
  if (JSON.stringify(expected) !== JSON.stringify(found))
    violations.push(`the store counts ${JSON.stringify(found)}, expected is ${JSON.stringify(expected)}`);
  const { repeated, unexplained, recovery } = seen;
  return { jobs, lost, settledTwice, repeated, unexplained, crashed, recovery, violations };
}

/** How often a job may run without any fault. */
function plannedRuns(n: number): number {
  const kind = kindOf(n);
  return kind === 'failing' || kind === 'retried' ? 2 : 1;
}

function follow(from: number, jobs: number, written: readonly Written[], faults: readonly Fault[]) {
  const workers = [...new Set(written.map(({ worker }) => worker))];
  const index = new Map(workers.map((worker, i) => [worker, i + 1]));
  const killed = new Map(
    faults.flatMap(({ kind, worker, from: at }) => (/kill|poison/.test(kind) && worker ? [[worker, at]] : [])),
  );
  const [runs, ends, deaths] = [new Uint8Array(jobs), new Uint8Array(jobs), new Uint8Array(jobs)];
  const [claimer, runner] = [new Uint16Array(jobs), new Uint16Array(jobs)];
  const ranAt = new Float64Array(jobs);
  const faulty = new Set(faults.map(({ worker }) => worker));
  /** A job that fails as planned may owe a repetition to the fault of an earlier run. */
  const beforeRetry = new Map<number, { worker: string; at: number }>();
  const recovery: number[] = [];
  let repeated = 0;
  let unexplained = 0;
  for (const { worker, step, at, numbers } of written) {
    const me = index.get(worker)!;
    for (const n of numbers) {
      const i = n - from;
      if (i < 0 || i >= jobs) throw new Error(`job ${n} ran in a round of ${jobs} from ${from}`);
      if (step === 'claimed') {
        const death = claimer[i] !== 0 && ends[i] === 0 ? killed.get(workers[claimer[i]! - 1]!) : undefined;
        if (death !== undefined && death <= at) recovery.push(at - death);
        if (faulty.has(worker)) deaths[i] = Math.min(255, deaths[i]! + 1);
        claimer[i] = me;
      } else if (step === 'ran') {
        if (runs[i]! >= plannedRuns(n)) {
          repeated += 1;
          const both = [worker, workers[runner[i]! - 1]];
          const first = plannedRuns(n) > 1 ? beforeRetry.get(n) : undefined;
          if (first) both.push(first.worker);
          if (!faults.some((fault) => explains(fault, both, first?.at ?? ranAt[i]!, at))) unexplained += 1;
        }
        if (runs[i] === 0 && plannedRuns(n) > 1) beforeRetry.set(n, { worker, at });
        runs[i] = Math.min(255, runs[i]! + 1);
        runner[i] = me;
        ranAt[i] = at;
      } else ends[i] = Math.min(255, ends[i]! + 1);
    }
  }
  return { runs, ends, deaths, repeated, unexplained, recovery };
}

function explains(fault: Fault, workers: readonly (string | undefined)[], first: number, second: number): boolean {
  const theirs = fault.worker === undefined || workers.includes(fault.worker);
  return theirs && fault.from <= second && fault.to >= first - AROUND;
}
