import type { Engine } from '../../../engine/engine.js';
import { isTerminal, type Job, type Need } from '../../../job/job.js';
import type { JobReference, JobView } from '../../api.js';
import { contentOf } from './content.js';
import { headOf } from './jobs.js';
import { pushCommand } from './push-command.js';
import { reasonsOf } from './reasons.js';
import { storyOf } from './story.js';

/** Jobs before and after this one that are shown. */
const MOST_NEIGHBOURS = 100;

/** Undefined if there is no such job. */
export async function jobView(engine: Engine, queue: string, id: string): Promise<JobView | undefined> {
  const { store } = engine;
  const [job] = await store.get(queue, [id]);
  if (!job) return undefined;
  const all = job.spec.needs ?? [];
  const [needs, { jobs, total }, held] = await Promise.all([
    statesOf(engine, all.slice(0, MOST_NEIGHBOURS)),
    store.dependents(queue, id, MOST_NEIGHBOURS),
    leaseOf(engine, job),
  ]);
  const open = needs.filter(({ state }) => state !== undefined && !isTerminal(state)).length;
  const { unique, headers = {} } = job.spec;
  return {
    ...headOf(job),
    ...held,
    now: store.now(),
    payload: contentOf(job.payload),
    ...(job.result === undefined ? {} : { result: contentOf(job.result) }),
    ...(job.error === undefined ? {} : { error: job.error }),
    ...(job.token === undefined ? {} : { token: job.token }),
    headers,
    reasons: await reasonsOf(engine, job, open),
    story: storyOf(job),
    log: (job.log ?? '').split('\n').slice(0, -1),
    needs,
    needsTotal: all.length,
    dependents: await statesOf(engine, jobs),
    dependentsTotal: total,
    ...(unique ? { unique: { key: unique.key, scope: unique.scope } } : {}),
    command: pushCommand(job),
  };
}

/** The states of these jobs, one call for each queue they are in. */
async function statesOf<T extends JobReference | Need>(
  { store }: Engine,
  jobs: readonly T[],
): Promise<(T & JobReference)[]> {
  const byQueue = new Map<string, string[]>();
  for (const { queue, id } of jobs) byQueue.set(queue, [...(byQueue.get(queue) ?? []), id]);
  const states = new Map<string, Job['state']>();
  for (const [queue, ids] of byQueue) {
    for (const job of await store.get(queue, ids)) if (job) states.set(`${queue}\0${job.id}`, job.state);
  }
  return jobs.map((job) => {
    const state = states.get(`${job.queue}\0${job.id}`);
    return { ...job, ...(state === undefined ? {} : { state }) };
  });
}

/** Until when an active job is held: its worker's session, and its reservation. */
async function leaseOf({ store }: Engine, job: Job): Promise<Pick<JobView, 'leaseUntil' | 'reservedUntil'>> {
  if (job.state !== 'active') return {};
  const session = (await store.workers(job.queue)).find(({ id }) => id === job.worker);
  const { reservation } = job.spec;
  return {
    ...(session ? { leaseUntil: session.deadline } : {}),
    ...(reservation > 0 && job.startedAt !== undefined ? { reservedUntil: job.startedAt + reservation } : {}),
  };
}
