import type { Event } from './events.js';

export interface Settle {
  process: string;
  /** The store did it between these two times; `endedAt` is absent if there was no answer. */
  invokedAt: number;
  endedAt?: number;
  /** What the store said; absent if there was no answer. */
  applied?: boolean;
  to: string;
}

/** One lease of a job: from the claim that gave out its token to the settlements that used it. */
export interface Attempt {
  id: string;
  token: string;
  /** The process and time of each claim that returned this token: exactly one, or none if the reply was lost. */
  claims: { process: string; invokedAt: number; endedAt: number }[];
  settles: Settle[];
}

export interface Run {
  id: string;
  process: string;
  startedAt: number;
  endedAt?: number;
}

/** Groups claims and settlements of a history by token. */
export function attemptsOf(events: readonly Event[]): Attempt[] {
  const attempts = new Map<string, Attempt>();
  const invoked = new Map<string, number>();
  const open = new Map<string, Settle[]>();
  const attempt = (id: string, token: string) => {
    const key = `${id} ${token}`;
    const found = attempts.get(key) ?? { id, token, claims: [], settles: [] };
    attempts.set(key, found);
    return found;
  };
  for (const event of events) {
    const call = `${event.process} ${event.verb} ${event.call}`;
    if (event.phase === 'invoke') invoked.set(call, event.at);
    if (event.verb === 'claim' && event.phase === 'ok') {
      const claim = { process: event.process, invokedAt: invoked.get(call) ?? event.at, endedAt: event.at };
      for (const { id, token } of event.entries ?? []) attempt(id, token).claims.push(claim);
    }
    if (event.verb !== 'settle') continue;
    if (event.phase === 'invoke') {
      const { process, at: invokedAt } = event;
      const settles = (event.settlements ?? []).map(({ to }): Settle => ({ process, invokedAt, to }));
      for (const [i, { id, token }] of (event.settlements ?? []).entries())
        attempt(id, token).settles.push(settles[i]!);
      open.set(call, settles);
    } else if (event.phase === 'ok') {
      for (const [i, settle] of (open.get(call) ?? []).entries()) {
        settle.endedAt = event.at;
        settle.applied = event.applied?.[i];
      }
    }
  }
  return [...attempts.values()];
}

/**
 * The same history, in which the answers of settlements that were under way in one of these spans count as unknown: a client whose
 * call was cut repeats it, and says that it was applied because it may have been.
 */
export function uncertainDuring(events: readonly Event[], spans: readonly (readonly [number, number])[]): Event[] {
  const invoked = new Map<string, number>();
  return events.map((event) => {
    if (event.verb !== 'settle') return event;
    const call = `${event.process} ${event.call}`;
    if (event.phase === 'invoke') invoked.set(call, event.at);
    const since = invoked.get(call) ?? event.at;
    const isCut = spans.some(([from, to]) => since < to && event.at > from);
    return event.phase === 'ok' && isCut ? { ...event, phase: 'unknown' } : event;
  });
}

/** What handlers did. */
export function runsOf(events: readonly Event[]): Run[] {
  const runs = new Map<string, Run>();
  for (const event of events) {
    if (event.verb !== 'run') continue;
    const key = `${event.process} ${event.call}`;
    if (event.phase === 'invoke') runs.set(key, { id: event.id, process: event.process, startedAt: event.at });
    else if (event.phase !== 'note') runs.get(key)!.endedAt = event.at;
  }
  return [...runs.values()];
}

export function groupBy<T>(all: readonly T[], key: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const group = groups.get(key(one));
    if (group) group.push(one);
    else groups.set(key(one), [one]);
  }
  return groups;
}
