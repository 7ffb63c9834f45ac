import { expect } from 'vitest';
import type { Entry, NewJob, State } from '../../dist/job/job.js';
import { DEFAULT_SPEC } from '../../dist/job/spec.js';
import { die, fail, finish, lose, type Outcome, release, snooze } from '../../dist/job/transitions.js';
import type { AddOutcome, LostEntry, Settlement, SourceStep, Store } from '../../dist/store/store.js';
import { names } from '../support/jobs.js';
import { LEASE, type Sides } from './sides.js';
import type { How, JobStep } from './steps.js';

/** Steps for jobs and raw tasks in a queue. */
export async function inQueue(sides: Sides, step: JobStep): Promise<void> {
  const { queue, model } = sides;
  switch (step.do) {
    case 'add':
      return addTo(
        sides,
        step.jobs.map((plan) => sides.newJob(plan)),
      );
    case 'push': {
      const tasks = Array.from({ length: step.tasks }, () => Buffer.from(`task ${sides.nextNumber()}`));
      model.tasks.push(tasks);
      return sides.agree(true, (store) => store.push(queue, tasks));
    }
    case 'claim':
      return claim(sides, `w${step.worker}`, step.n);
    case 'settle':
      return settle(sides, step.picks);
    case 'progress': {
      const leased = sides.leased[step.which % Math.max(1, sides.leased.length)];
      if (!leased?.[0]?.job) return;
      const progress = `{"at":${sides.now}}`;
      const noted = model.recordProgress(leased[0].lease, progress);
      return sides.agree(noted, (store, i) => store.recordProgress(queue, leased[i + 1]!.lease, { progress }));
    }
    case 'heartbeat': {
      const session = { queue, worker: `w${step.worker}`, lease: LEASE };
      return sides.agree([model.heartbeat(session.worker, LEASE)], (store) => store.heartbeat([session]));
    }
    case 'join':
      model.join(`w${step.worker}`, LEASE);
      await sides.each((store) => store.join(queue, `w${step.worker}`, { lease: LEASE, info: '' }));
      return;
    case 'wait':
      sides.now += step.ms;
      return;
    case 'sweep':
      return sweep(sides);
    case 'cancel':
    case 'reportSuccess':
    case 'remove': {
      const id = `j${step.id}`;
      return sides.agree([model[step.do](id)], (store) => store[step.do](queue, [id]));
    }
    case 'retry dead': {
      const id = oneIn(sides, ['dead'], step.id);
      return sides.agree([model.rerun(id, ['dead'])], (store) => store.rerun(queue, [id], ['dead']));
    }
    case 'rerun': {
      const id = oneIn(sides, ENDED, step.which);
      return sides.agree([model.rerun(id, ENDED)], (store) => store.rerun(queue, [id], ENDED));
    }
    case 'update': {
      const id = oneIn(sides, ['blocked', 'scheduled', 'ready', 'active'], step.which);
      const { priority, delay } = step;
      const changes = {
        ...(priority === undefined ? {} : { priority }),
        ...(delay === undefined ? {} : { delay }),
        ...(step.payload === undefined ? {} : { payload: JSON.stringify('changed'.repeat(step.payload)) }),
      };
      return sides.agree(model.update(id, changes), (store) => store.update(queue, id, changes));
    }
    case 'limits':
      model.setLimits(step.limits);
      await sides.each((store) => store.configure(queue, { limits: step.limits }));
      return;
    case 'breaker':
      model.breaker.configure(step.breaker);
      await sides.each((store) => store.configure(queue, { breaker: step.breaker }));
      return;
    case 'pause':
      model.pause(step.paused);
      await sides.each((store) => store.configure(queue, { paused: step.paused }));
  }
}

const ENDED = ['done', 'dead', 'cancelled'] as const;

/** A job in one of these states, or some other id when there is none. */
function oneIn({ ids, model }: Sides, states: readonly State[], which: number): string {
  const found = [...ids].filter((id) => states.includes(model.get(id)?.state ?? 'ready') && model.get(id));
  return found[which % found.length] ?? `j${which}`;
}

export function addTo(sides: Sides, jobs: NewJob[]): Promise<void> {
  return accepted(sides, sides.model.add(jobs), (store) => store.add(sides.queue, jobs));
}

/** The same, as a step of an ordered source. */
export async function addFromSourceTo(sides: Sides, jobs: NewJob[], mark: SourceStep): Promise<void> {
  await accepted(sides, sides.model.addFromSource(jobs, mark), (store) => store.sources.add(sides.queue, jobs, mark));
  await sides.agree(sides.model.sourcePosition(mark.source), (store) =>
    store.sources.position(sides.queue, mark.source),
  );
}

type Answer = AddOutcome[] | string;

function accepted(sides: Sides, wanted: Answer, call: (store: Store) => Promise<Answer>): Promise<void> {
  return sides.agree(wanted === 'unknown' ? 'UNKNOWN_UPSTREAM' : wanted, (store) =>
    call(store).catch((error: { code: string }) => error.code),
  );
}

async function claim(sides: Sides, worker: string, n: number): Promise<void> {
  const session = { queue: sides.queue, worker, lease: LEASE };
  const wanted = sides.model.claim(session, n);
  const claims = await sides.each((store) => store.claim(session, n));
  for (const { status, more, nextAt, entries } of claims) {
    expect({ status, names: names(entries) }).toEqual({ status: wanted.status, names: names(wanted.entries) });
    expect(entries.map((entry) => entry.job?.attempt)).toEqual(wanted.entries.map((entry) => entry.job?.attempt));
    expect({ more, nextAt }).toEqual({ more: wanted.more, nextAt: wanted.nextAt });
  }
  for (const [i, entry] of wanted.entries.entries())
    sides.leased.push([entry, ...claims.map(({ entries }) => entries[i]!)]);
}

async function settle(sides: Sides, picks: { which: number; how: How }[]): Promise<void> {
  if (sides.leased.length === 0) return;
  const batches: Settlement[][] = [[], ...sides.stores.map(() => [])];
  for (const { which, how } of picks) {
    const leased = sides.leased[which % sides.leased.length]!;
    const { task } = leased[0]!;
    const id = `born${sides.nextNumber()}`;
    const record: NewJob = { id, payload: task ?? '', priority: 0, spec: DEFAULT_SPEC };
    for (const [side, entry] of leased.entries()) batches[side]!.push(outcome(entry, how, record));
    if (task && how !== 'done' && how !== 'release') sides.ids.add(id);
  }
  await sides.agree(sides.model.settle(batches[0]!), (store, i) => store.settle(sides.queue, batches[i + 1]!));
}

/** Lost entries are returned in no particular order, but are settled in a fixed order. */
async function sweep(sides: Sides): Promise<void> {
  const options = { lease: LEASE, every: 0 };
  const nameOf = (entry: LostEntry) => `${names([entry])[0]} ${entry.why}`;
  const sorted = (lost: readonly LostEntry[]) => [...lost].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const wanted = sorted(sides.model.sweep(options));
  const found = (await sides.each((store) => store.sweep(sides.queue, options))).map(({ lost }) => sorted(lost));
  for (const lost of found) expect(lost.map(nameOf)).toEqual(wanted.map(nameOf));
  const settled = sides.model.settle(wanted.map(judged));
  await sides.agree(settled, (store, i) => store.settle(sides.queue, found[i]!.map(judged)));
}

function outcome(entry: Entry, how: How, record: NewJob): Settlement {
  const job = entry.job ?? { attempt: 1, crashes: 0, spec: DEFAULT_SPEC };
  const random = () => 0.5;
  const moves: Record<How, () => Outcome> = {
    done: () => finish(job),
    fail: () => fail(job, 'failed', { random, now: 0, delay: 70 }),
    die: () => die(job, 'died'),
    release: () => release(job),
    snooze: () => snooze(job, 90),
  };
  const needsRecord = entry.task !== undefined && how !== 'done' && how !== 'release';
  return {
    lease: entry.lease,
    outcome: moves[how](),
    spec: entry.job?.spec ?? DEFAULT_SPEC,
    priority: entry.job?.priority ?? 0,
    record: needsRecord ? record : undefined,
  };
}

function judged(entry: LostEntry): Settlement {
  if (!entry.job)
    return { lease: entry.lease, outcome: { to: 'ready', attempt: 0, crashes: 0 }, spec: DEFAULT_SPEC, priority: 0 };
  const { job } = entry;
  const move = entry.why === 'worker' ? lose(job, 2, 'x') : fail(job, 'late', { random: () => 0, now: 0, delay: 60 });
  return { lease: entry.lease, outcome: move, spec: job.spec, priority: job.priority };
}
