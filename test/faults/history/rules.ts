import { type Attempt, groupBy, type Run } from './attempts.js';
import type { Event } from './events.js';

/** A job as the store has it at the end. */
export interface FinalJob {
  id: string;
  state: string;
}

export interface FinalState {
  /** The jobs of all states, as they are listed. */
  jobs: FinalJob[];
  /** How many there are of each state, as they are counted. */
  counts: Record<string, number>;
}

const ENDED = new Set(['done', 'dead', 'cancelled']);

/**
 * A: what was accepted is in exactly one state, what was refused is nowhere, nothing appears from nowhere, and the counts are true.
 * Jobs of calls without an answer may or may not be there. `mayLose`: how many accepted jobs the store is allowed to lose.
 */
export function accounted(
  events: readonly Event[],
  final: FinalState,
  { mayLose = 0, allEnded = false } = {},
): string[] {
  const violations: string[] = [];
  const { accepted, possible } = adds(events);
  const seen = groupBy(final.jobs, ({ id }) => id);
  const missing = [...accepted].filter((id) => !seen.has(id));
  if (missing.length > mayLose) violations.push(`${missing.length} accepted jobs are missing: ${some(missing)}`);
  for (const [id, jobs] of seen) {
    if (jobs.length > 1) violations.push(`${id} is in ${jobs.length} states: ${jobs.map(({ state }) => state)}`);
    if (!possible.has(id)) violations.push(`${id} is ${jobs[0]!.state} and was never added, or its add was refused`);
  }
  for (const [state, jobs] of groupBy(final.jobs, ({ state }) => state)) {
    const count = final.counts[state];
    if (count !== jobs.length) violations.push(`${jobs.length} jobs are listed as ${state} and ${count} are counted`);
  }
  const total = Object.values(final.counts).reduce((sum, n) => sum + n, 0);
  if (total !== final.jobs.length) violations.push(`${final.jobs.length} jobs are listed and ${total} are counted`);
  const waiting = allEnded ? final.jobs.filter(({ state }) => !ENDED.has(state)).map(({ id }) => id) : [];
  if (waiting.length > 0) violations.push(`${waiting.length} jobs have not ended: ${some(waiting)}`);
  return violations;
}

/** The jobs that were accepted, and those that may be in the store. */
export function adds(events: readonly Event[]): { accepted: Set<string>; possible: Set<string> } {
  const accepted = new Set<string>();
  const possible = new Set<string>();
  const invoked = new Map<string, string[]>();
  for (const event of events) {
    if (event.verb !== 'add') continue;
    const call = `${event.process} ${event.call}`;
    if (event.phase === 'invoke') invoked.set(call, event.ids);
    else if (event.phase === 'ok') for (const id of [...event.ids, ...(event.duplicates ?? [])]) accepted.add(id);
    else if (event.phase === 'unknown') for (const id of event.ids) possible.add(id);
    if (event.phase !== 'invoke') invoked.delete(call);
  }
  // the process died before it got an answer
  for (const ids of invoked.values()) for (const id of ids) possible.add(id);
  for (const id of accepted) possible.add(id);
  return { accepted, possible };
}

/** F: every token is given out once and used once, and once another lease of the job has begun, it changes nothing any more. */
export function fenced(attempts: readonly Attempt[], final: FinalState): string[] {
  const violations: string[] = [];
  for (const { id, token, claims, settles } of attempts) {
    if (claims.length > 1) violations.push(`${id}: ${claims.map(({ process }) => process)} all got token ${token}`);
    const applied = settles.filter((settle) => settle.applied);
    if (applied.length > 1)
      violations.push(`${id}: token ${token} was applied ${applied.length} times (${applied.map(({ to }) => to)})`);
  }
  for (const [id, all] of groupBy(attempts, ({ id }) => id)) violations.push(...fencedJob(id, all));
  return [...violations, ...endedByNobody(attempts, final)];
}

function fencedJob(id: string, attempts: readonly Attempt[]): string[] {
  const violations: string[] = [];
  const claimed = attempts.filter(({ claims }) => claims.length > 0);
  const endings = attempts.flatMap(({ token, settles }) =>
    settles.filter(({ applied, to }) => applied && ENDED.has(to)).map((settle) => ({ token, settle })),
  );
  if (endings.length > 1)
    violations.push(`${id}: it was ended ${endings.length} times (${endings.map(({ settle }) => settle.to)})`);
  for (const { token, settle } of endings) {
    const again = claimed.find((one) => one.token !== token && one.claims[0]!.invokedAt > settle.endedAt!);
    if (again) violations.push(`${id}: ${again.claims[0]!.process} claimed it after it had ended as ${settle.to}`);
  }
  for (const earlier of claimed) {
    const later = claimed.filter((one) => one.claims[0]!.invokedAt > earlier.claims[0]!.endedAt);
    for (const settle of earlier.settles.filter(({ applied }) => applied)) {
      const taken = later.find((one) => one.claims[0]!.endedAt < settle.invokedAt);
      if (taken)
        violations.push(
          `${id}: ${settle.process} settled it as ${settle.to} while ${taken.claims[0]!.process} held it`,
        );
    }
  }
  return violations;
}

/** A job is done or dead only if somebody settled it so, or may have. */
function endedByNobody(attempts: readonly Attempt[], { jobs }: FinalState): string[] {
  const settled = new Set<string>();
  for (const { id, settles } of attempts)
    for (const { to, applied } of settles) if (applied !== false) settled.add(`${id} ${to}`);
  const settles = attempts.some((attempt) => attempt.settles.length > 0);
  const unexplained = jobs.filter(({ id, state }) => /^(done|dead)$/.test(state) && !settled.has(`${id} ${state}`));
  if (!settles || unexplained.length === 0) return [];
  return [`${unexplained.length} jobs have ended, and nobody settled them: ${some(unexplained.map(({ id }) => id))}`];
}

/** For how long two handlers ran the same job at the same time, in milliseconds, and in how many jobs. */
export function overlapOf(runs: readonly Run[], until: number): { ms: number; jobs: number } {
  let ms = 0;
  let jobs = 0;
  for (const all of groupBy(runs, ({ id }) => id).values()) {
    const sorted = [...all].sort((a, b) => a.startedAt - b.startedAt);
    let most = 0;
    for (const [i, run] of sorted.entries()) {
      for (const earlier of sorted.slice(0, i)) {
        const end = Math.min(earlier.endedAt ?? until, run.endedAt ?? until);
        most = Math.max(most, end - run.startedAt);
      }
    }
    if (most > 0) jobs += 1;
    ms = Math.max(ms, most);
  }
  return { ms, jobs };
}

export function some(ids: readonly string[]): string {
  return ids.length > 5 ? `${ids.slice(0, 5).join(', ')} …` : ids.join(', ');
}
