import { groupBy } from '../engine/group-by.js';
import { checkName, checkOneOf, checkOptions, describe } from '../engine/input/check.js';
import type { AddOptions } from '../engine/input/options.js';
import { CroreError } from '../errors.js';
import { newId } from '../job/id.js';
import { isTerminal, type Job, type JobRef, type Need, type NeedPolicy } from '../job/job.js';
import { MAX_BATCH } from '../store/store.js';
import { Handle, type JobView, viewOf } from './handle.js';
import { Producer } from './producer.js';
import { type AddManyItem, type QueueContext, resolveQueue } from './queue-input.js';

/** A job that runs when its children have ended, which may have children of their own. */
export interface TreeItem<T = unknown> extends Omit<AddOptions, 'needs' | 'parent' | 'batchPolicy'> {
  queue: string;
  payload: T;
  /** `success` (default): the parent is cancelled if this job does not succeed; `finished`: it runs whatever becomes of it. */
  on?: NeedPolicy;
  children?: readonly TreeItem[];
}

/** A job with its children, as they are now. */
export interface JobTree {
  job: JobView<unknown, unknown>;
  children: JobTree[];
  /** There are more descendants than are shown. */
  truncated?: boolean;
}

/** How many jobs a tree may have when it is added, and how many are looked at; how many levels it may have. */
const MOST_IN_TREE = 10_000;
const DEEPEST = 1_000;

interface Planned {
  queue: string;
  depth: number;
  item: AddManyItem<unknown> & { id: string };
}

/** Adds the jobs of a tree, the leaves first: a job is never there before those it waits for. */
export async function addTree(context: QueueContext, root: TreeItem): Promise<Handle<unknown, unknown>> {
  const planned: Planned[] = [];
  const { id } = plan(root, undefined, 0, planned, 'addTree');
  const added: JobRef[] = [];
  const levels = [...groupBy(planned, ({ depth }) => depth)].sort(([a], [b]) => b - a);
  try {
    for (const [, level] of levels) {
      for (const [queue, jobs] of groupBy(level, (one) => one.queue))
        added.push(...(await addTo(context, queue, jobs)));
    }
  } catch (error) {
    await cancelAll(context, added).catch(() => {}); // the store is gone, and the error says so
    throw error;
  }
  return new Handle(context.engine, root.queue, id, 'created', context.codecs.get(root.queue));
}

async function addTo(context: QueueContext, queue: string, jobs: readonly Planned[]): Promise<JobRef[]> {
  const codec = context.codecs.get(queue);
  const producer = new Producer<unknown, unknown>(resolveQueue(context, queue, codec ? { codec } : {}));
  const handles = await producer.addMany(jobs.map(({ item }) => item));
  const taken = handles.find(({ outcome }) => outcome !== 'created');
  if (taken)
    throw new CroreError(
      'BAD_OPTION',
      `addTree: there is a job '${taken.id}' in queue '${queue}' already (${taken.outcome})`,
    );
  return handles.map(({ id }) => ({ queue, id }));
}

function plan(item: TreeItem, parent: JobRef | undefined, depth: number, planned: Planned[], place: string): Need {
  if (item === null || typeof item !== 'object')
    throw new CroreError('BAD_OPTION', `${place} must be an object with a queue and a payload, not ${describe(item)}`);
  const { queue, on = 'success', children = [], ...rest } = item;
  checkName(queue, `${place}: queue name`);
  if (!Array.isArray(children))
    throw new CroreError('BAD_OPTION', `${place}: children must be an array, not ${describe(children)}`);
  if (depth > DEEPEST) throw new CroreError('BAD_OPTION', `addTree: a tree can have at most ${DEEPEST} levels`);
  if (planned.length + children.length >= MOST_IN_TREE)
    throw new CroreError('BAD_OPTION', `addTree: a tree can have at most ${MOST_IN_TREE} jobs`);
  const id = rest.id === undefined ? newId(Date.now()) : checkName(rest.id, `${place}: job id`);
  const own: Planned = { queue, depth, item: { ...rest, id, ...(parent ? { parent } : {}) } };
  planned.push(own);
  const needs = (children as readonly TreeItem[]).map((child, i) =>
    plan(child, { queue, id }, depth + 1, planned, `${place}, child ${i}`),
  );
  if (needs.length > 0) own.item.needs = needs;
  return { queue, id, on: checkOneOf<NeedPolicy>(on, `${place}: on`, ['success', 'finished']) };
}

/** A job and its descendants; undefined if there is no such job. */
export async function readTree(context: QueueContext, ref: JobRef): Promise<JobTree | undefined> {
  const found = await descendants(context, ref);
  const views = new Map<Job, JobTree>();
  for (const { job, parent, truncated } of found) {
    const tree: JobTree = { job: viewOf(job, context.codecs.get(job.queue)), children: [] };
    if (truncated) tree.truncated = true;
    views.set(job, tree);
    if (parent) views.get(parent)!.children.push(tree);
  }
  return found[0] && views.get(found[0].job);
}

/** Cancels a job and its descendants, the job first, so that it does not run because they end. Returns how many. */
export async function cancelTree(context: Pick<QueueContext, 'engine'>, ref: JobRef, by?: string): Promise<number> {
  const open = (await descendants(context, ref)).filter(({ job }) => !isTerminal(job.state));
  return cancelAll(
    context,
    open.map(({ job }) => job),
    by,
  );
}

/** Cancels a job and its descendants, and removes their records. Returns how many were removed. */
export async function removeTree(context: Pick<QueueContext, 'engine'>, ref: JobRef, by?: string): Promise<number> {
  const found = (await descendants(context, ref)).map(({ job }) => job);
  await cancelAll(
    context,
    found.filter(({ state }) => !isTerminal(state)),
    by,
  );
  let removed = 0;
  for (const [queue, jobs] of groupBy(found, (job) => job.queue)) {
    for (const ids of pages(jobs)) removed += (await context.engine.store.remove(queue, ids)).filter(Boolean).length;
  }
  return removed;
}

async function cancelAll(context: Pick<QueueContext, 'engine'>, jobs: readonly JobRef[], by?: string): Promise<number> {
  let cancelled = 0;
  // In this order, and no two levels in one call.
  for (const { queue, id } of jobs) {
    const [applied] = await context.engine.store.cancel(queue, [id], by);
    if (applied) cancelled += 1;
  }
  return cancelled;
}

export interface Descendant {
  job: Job;
  parent?: Job;
  truncated?: boolean;
}

/** The job and its descendants, level by level. A child is a job that it needs or has waited for, and that names it as its parent. */
export async function descendants(
  { engine: { store } }: Pick<QueueContext, 'engine'>,
  root: JobRef,
  most = MOST_IN_TREE,
): Promise<Descendant[]> {
  const [first] = await store.get(root.queue, [root.id]);
  const all: Descendant[] = first ? [{ job: first }] : [];
  const seen = new Set(all.map(({ job }) => `${job.queue}\0${job.id}`));
  for (let i = 0; i < all.length; i++) {
    const one = all[i]!;
    const parent = one.job;
    const refs = [...(parent.spec.needs ?? []), ...(parent.children?.children ?? [])];
    for (const [queue, some] of groupBy(refs, (ref) => ref.queue)) {
      for (const ids of pages(some)) {
        for (const job of await store.get(queue, ids)) {
          if (!job || !isChildOf(job, parent) || seen.has(`${queue}\0${job.id}`)) continue;
          if (all.length >= most) {
            one.truncated = true;
            break;
          }
          seen.add(`${queue}\0${job.id}`);
          all.push({ job, parent });
        }
      }
    }
  }
  return all;
}

function isChildOf({ spec: { parent } }: Job, { queue, id }: Job): boolean {
  return parent?.queue === queue && parent.id === id;
}

function* pages(refs: readonly JobRef[]): Generator<string[]> {
  for (let i = 0; i < refs.length; i += MAX_BATCH) yield refs.slice(i, i + MAX_BATCH).map(({ id }) => id);
}

export function checkTreeOptions(options: { by?: string }, what: string): { by?: string } {
  checkOptions(options, ['by'], what);
  return options;
}
