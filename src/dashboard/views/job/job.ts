import type { Engine } from '../../../engine/engine.js';
import { isTerminal, type Job, type Need } from '../../../job/job.js';
import { descendants } from '../../../queue/tree.js';
import type { JobReference, JobView } from '../../api.js';
import { contentOf } from './content.js';
import { headOf } from './jobs.js';
import { pushCommand } from './push-command.js';
import { reasonsOf } from './reasons.js';
import { storyOf } from './story.js';

/** Jobs before and after this one that are shown. */
const MOST_NEIGHBOURS = 100;
/** Jobs of a tree that are shown, with its root. */
const MOST_IN_TREE = 201;
/** Jobs that are read at once. */
const TOGETHER = 500;

/** Undefined if there is no such job. */
export async function jobView(engine: Engine, queue: string, id: string): Promise<JobView | undefined> {
  const { store } = engine;
  const [job] = await store.get(queue, [id]);
  if (!job) return undefined;
  const needs = job.spec.needs ?? [];
  const children = job.children?.children ?? [];
  const [upstream, below, { jobs, total }, held, family] = await Promise.all([
    jobsOf(engine, needs),
    jobsOf(engine, children),
    store.dependents(queue, id, MOST_NEIGHBOURS),
    leaseOf(engine, job),
    familyOf(engine, job),
  ]);
  const open = [...upstream, ...below].filter((one): one is Job => one !== undefined && !isTerminal(one.state));
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
    needs: withStates(needs, upstream)
      .filter((_need, i) => !isChildOf(upstream[i], job))
      .slice(0, MOST_NEIGHBOURS),
    needsTotal: needs.filter((_need, i) => !isChildOf(upstream[i], job)).length,
    dependents: withStates(jobs, await jobsOf(engine, jobs)),
    dependentsTotal: total,
    ...(await treeOf(engine, job, [...upstream, ...below])),
    ...family,
    ...(job.spec.retryFor === undefined || isTerminal(job.state)
      ? {}
      : { retryUntil: job.createdAt + job.spec.retryFor }),
    ...(unique ? { unique: { key: unique.key, scope: unique.scope } } : {}),
    command: pushCommand(job),
  };
}

/** What is below it, each followed by what is below that. */
async function treeOf(
  engine: Engine,
  job: Job,
  near: readonly (Job | undefined)[],
): Promise<Pick<JobView, 'tree' | 'treeCut'>> {
  if (!near.some((one) => isChildOf(one, job))) return { tree: [], treeCut: false };
  const found = await descendants({ engine }, job, MOST_IN_TREE);
  const tree: JobView['tree'] = [];
  const list = (parent: Job, depth: number) => {
    const policies = new Map([...(parent.spec.needs ?? []), ...(parent.children?.children ?? [])].map(policyOf));
    for (const { job: child } of found.filter((one) => one.parent === parent)) {
      const { queue, id, state } = child;
      tree.push({ queue, id, state, on: policies.get(`${queue}\0${id}`) ?? 'success', depth });
      list(child, depth + 1);
    }
  };
  list(found[0]!.job, 0);
  return { tree, treeCut: found.some(({ truncated }) => truncated) };
}

function policyOf({ queue, id, on }: Need): [string, Need['on']] {
  return [`${queue}\0${id}`, on];
}

function isChildOf(child: Job | undefined, { queue, id }: Job): boolean {
  return child?.spec.parent?.queue === queue && child.spec.parent.id === id;
}

/** The jobs it belongs with, other than those it waits for. */
async function familyOf(engine: Engine, job: Job): Promise<Pick<JobView, 'parent' | 'memberOf' | 'batch'>> {
  const { parent, batch } = job.spec;
  const refs = [parent, batch].filter((ref) => ref !== undefined);
  const found = withStates(refs, await jobsOf(engine, refs));
  return {
    ...(parent ? { parent: found[0]! } : {}),
    ...(batch ? { memberOf: found.at(-1)! } : {}),
    ...(job.batch ? { batch: { ...job.batch, members: await openMembersOf(engine, job) } } : {}),
  };
}

async function openMembersOf(engine: Engine, { queue, id }: Job): Promise<JobReference[]> {
  const page = await engine.store.batches.openMembers(queue, id, { limit: MOST_NEIGHBOURS });
  const members = page.members.slice(0, MOST_NEIGHBOURS);
  return withStates(members, await jobsOf(engine, members));
}

/** These jobs as they are now, one call for each queue they are in; undefined where a record is no longer kept. */
async function jobsOf({ store }: Engine, wanted: readonly JobReference[]): Promise<(Job | undefined)[]> {
  const byQueue = new Map<string, string[]>();
  for (const { queue, id } of wanted) byQueue.set(queue, [...(byQueue.get(queue) ?? []), id]);
  const found = new Map<string, Job>();
  for (const [queue, ids] of byQueue) {
    for (let i = 0; i < ids.length; i += TOGETHER) {
      for (const job of await store.get(queue, ids.slice(i, i + TOGETHER)))
        if (job) found.set(`${queue}\0${job.id}`, job);
    }
  }
  return wanted.map(({ queue, id }) => found.get(`${queue}\0${id}`));
}

function withStates<T extends JobReference | Need>(
  wanted: readonly T[],
  jobs: readonly (Job | undefined)[],
): (T & JobReference)[] {
  return wanted.map((one, i) => ({ ...one, ...(jobs[i] ? { state: jobs[i].state } : {}) }));
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
