import { attemptsOf, groupBy, runsOf } from './attempts.js';
import type { Event } from './events.js';
import { bounded, percentile, recovered, takenFromLiving } from './recovery.js';
import { accounted, adds, type FinalState, fenced, overlapOf } from './rules.js';

export interface Bounds {
  /** How many accepted jobs the store may lose; default none. */
  mayLose?: number;
  /** Whether every job has to have ended. */
  allEnded?: boolean;
  /** Milliseconds within which the work of a dead process starts again. */
  backWithin?: number;
  /** For how many milliseconds two handlers may run the same job; absent: any. */
  overlap?: number;
  rss?: number;
  descriptors?: number;
}

export interface Verdict {
  /** Each begins with the letter of the rule that it breaks. */
  violations: string[];
  figures: {
    accepted: number;
    lost: number;
    /** Jobs whose handler ran to its end more than once. */
    doubled: number;
    overlapMs: number;
    /** Jobs that were taken from a live process. */
    falseReaps: number;
    recovery: { count: number; p50: number; p99: number; max: number };
  };
}

/** Proves from the histories of all processes and the final state that no rule was broken. */
export function check(events: readonly Event[], final: FinalState, bounds: Bounds = {}): Verdict {
  const attempts = attemptsOf(events);
  const runs = runsOf(events);
  const last = events.at(-1)?.at ?? 0;
  const back = recovered(events, attempts, final, bounds.backWithin ?? Infinity);
  const overlap = overlapOf(runs, last);
  const violations = [
    ...accounted(events, final, bounds).map((text) => `A: ${text}`),
    ...fenced(attempts, final).map((text) => `F: ${text}`),
    ...back.violations.map((text) => `B: ${text}`),
    ...bounded(events, bounds).map((text) => `R: ${text}`),
  ];
  if (overlap.ms > (bounds.overlap ?? Infinity))
    violations.push(`F: handlers of one job overlapped for ${Math.round(overlap.ms)} ms in ${overlap.jobs} jobs`);
  const present = new Set(final.jobs.map(({ id }) => id));
  const { accepted } = adds(events);
  const completed = groupBy(
    runs.filter(({ endedAt }) => endedAt !== undefined),
    ({ id }) => id,
  );
  const { times } = back;
  return {
    violations,
    figures: {
      accepted: accepted.size,
      lost: [...accepted].filter((id) => !present.has(id)).length,
      doubled: [...completed.values()].filter((all) => all.length > 1).length,
      overlapMs: Math.round(overlap.ms),
      falseReaps: takenFromLiving(events, attempts),
      recovery: {
        count: times.length,
        p50: Math.round(percentile(times, 0.5)),
        p99: Math.round(percentile(times, 0.99)),
        max: Math.round(Math.max(0, ...times)),
      },
    },
  };
}
