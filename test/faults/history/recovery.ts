import { type Attempt, groupBy } from './attempts.js';
import type { DeathLine, Event, SampleLine } from './events.js';
import type { FinalState } from './rules.js';

export interface Recovery {
  violations: string[];
  /** For each job that a dead process held: milliseconds until it was claimed again. */
  times: number[];
}

/** B: what a dead process held is claimed again within the bound, unless somebody has ended it meanwhile. */
export function recovered(
  events: readonly Event[],
  attempts: readonly Attempt[],
  final: FinalState,
  within: number,
): Recovery {
  const deaths = events.filter((event): event is DeathLine => event.verb === 'death');
  const byId = groupBy(attempts, ({ id }) => id);
  const states = new Map(final.jobs.map(({ id, state }) => [id, state]));
  const violations: string[] = [];
  const times: number[] = [];
  for (const { victim, at } of deaths) {
    for (const { id, token } of attempts.filter((one) => heldBy(one, victim, at))) {
      const again = (byId.get(id) ?? [])
        .flatMap(({ token: other, claims }) => (other === token ? [] : claims))
        .filter(({ endedAt }) => endedAt > at);
      const first = Math.min(...again.map(({ endedAt }) => endedAt));
      if (Number.isFinite(first)) times.push(first - at);
      else if (/^(ready|active|scheduled|blocked)$/.test(states.get(id) ?? '')) {
        violations.push(`${id}: ${victim} died with it, and nobody has claimed it since`);
      }
      if (first - at > within && Number.isFinite(first))
        violations.push(
          `${id}: claimed again ${Math.round(first - at)} ms after ${victim} died, allowed are ${within}`,
        );
    }
  }
  return { violations, times };
}

/** Whether this process had it at that time, as far as its own history says. */
function heldBy({ claims, settles }: Attempt, process: string, at: number): boolean {
  const claim = claims.find((one) => one.process === process);
  return claim !== undefined && claim.endedAt <= at && !settles.some((one) => one.applied && one.endedAt! <= at);
}

/** How often a job was taken from a process that was alive: its lease was ended by another one, and no death was noted before. */
export function takenFromLiving(events: readonly Event[], attempts: readonly Attempt[]): number {
  const deaths = new Map(events.flatMap((event) => (event.verb === 'death' ? [[event.victim, event.at]] : [])));
  return attempts.filter(({ claims: [claim], settles }) => {
    const taken = settles.find(({ applied, process }) => applied && claim && process !== claim.process);
    return claim && taken && !((deaths.get(claim.process) ?? Infinity) < taken.endedAt!);
  }).length;
}

/** R: no process uses more than this. */
export function bounded(events: readonly Event[], limits: { rss?: number; descriptors?: number }): string[] {
  const violations: string[] = [];
  const samples = events.filter((event): event is SampleLine => event.verb === 'sample');
  for (const [process, all] of groupBy(samples, (sample) => sample.process)) {
    for (const what of ['rss', 'descriptors'] as const) {
      const most = Math.max(...all.map((sample) => sample[what]));
      if (most > (limits[what] ?? Infinity))
        violations.push(`${process}: ${what} ${most}, allowed are ${limits[what]}`);
    }
  }
  return violations;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
