import { chunks } from '../engine/engine.js';
import { checkInteger, checkName, checkOneOf, checkOptions } from '../engine/input/check.js';
import {
  BULK_KNOWN,
  type BulkOptions,
  type Filter,
  forEachMatching,
  listMatching,
  resolveFilter,
} from '../engine/input/filter.js';
import { resolveChanges, type UpdateOptions } from '../engine/input/options.js';
import { encodeValue, validate } from '../engine/input/payload.js';
import { checkMove, MOVABLE, moveError } from '../engine/queue/move.js';
import { CroreError } from '../errors.js';
import { isWaiting, STATES, type State } from '../job/job.js';
import { checkFunction } from '../worker/options.js';
import { type JobView, viewOf } from './handle.js';
import { checkCursor, type QueueSetup } from './queue-input.js';

/** Looking at the jobs of a queue and changing them, one by one or all that match a filter: what `Queue` offers of it. */

export interface ListPageOptions {
  /** Maximum number of jobs per page; default 100. */
  limit?: number;
  /** The cursor returned with the previous page. */
  cursor?: string;
  filter?: Omit<Filter, 'state'>;
}

export async function getJob<T, R>(
  { engine, name, codec }: QueueSetup,
  id: string,
): Promise<JobView<T, R> | undefined> {
  const [job] = await engine.store.get(name, [id]);
  return job && viewOf(job, codec);
}

export async function listJobs<T, R>(
  { engine, name, codec }: QueueSetup,
  state: State,
  options: ListPageOptions,
): Promise<{ jobs: JobView<T, R>[]; cursor?: string }> {
  checkOneOf(state, 'state', STATES);
  checkOptions(options, ['limit', 'cursor', 'filter'], 'list');
  const limit = options.limit === undefined ? 100 : checkInteger(options.limit, 'limit', 1, 1_000);
  const filter = resolveFilter(options.filter ?? {}, [state], 'list');
  const asked = { limit, cursor: checkCursor(options.cursor) };
  const page = await listMatching(engine, name, state, filter, asked);
  return { jobs: page.jobs.map((job) => viewOf<T, R>(job, codec)), cursor: page.cursor };
}

export async function cancelJobs(
  queue: QueueSetup,
  which: string | Filter,
  options: BulkOptions,
): Promise<boolean | number> {
  checkOptions(options, BULK_KNOWN, 'cancel');
  const act = (ids: string[]) => queue.engine.store.cancel(queue.name, ids, options.by);
  if (typeof which === 'string') return (await act([which]))[0]!;
  return changeMatching(queue, which, ['blocked', 'scheduled', 'ready', 'active'], 'cancel', act, options);
}

export async function retryDeadJobs(
  queue: QueueSetup,
  which: string | readonly string[] | Filter,
  options: BulkOptions,
): Promise<number> {
  checkOptions(options, BULK_KNOWN, 'retryDead');
  const act = (ids: readonly string[]) => queue.engine.store.rerun(queue.name, ids, ['dead'], options.by);
  if (typeof which === 'string' || Array.isArray(which)) {
    let revived = 0;
    for (const ids of chunks([which].flat() as string[], () => 0)) revived += (await act(ids)).filter(Boolean).length;
    return revived;
  }
  return changeMatching(queue, which as Filter, ['dead'], 'retryDead', act, options);
}

export async function rerunJob(
  { engine, name }: QueueSetup,
  id: string,
  options: Pick<BulkOptions, 'by'>,
): Promise<boolean> {
  checkOptions(options, ['by'], 'rerun');
  const ids = [checkName(id, 'job id')];
  const [applied] = await engine.store.rerun(name, ids, ['done', 'dead', 'cancelled'], options.by);
  return applied!;
}

export async function updateJob<T>(
  { engine, name, schema, codec, maxPayload }: QueueSetup,
  id: string,
  changes: UpdateOptions & { payload?: T },
  options: Pick<BulkOptions, 'by'>,
): Promise<void> {
  checkOptions(options, ['by'], 'update');
  checkOptions(changes, ['payload', 'priority', 'delay', 'at'], 'update');
  const { payload, ...asked } = changes;
  const what = `payload for queue '${name}'`;
  if (schema && 'payload' in changes) await validate(schema, payload, what);
  const body = 'payload' in changes ? encodeValue(payload, what, maxPayload, codec) : undefined;
  const resolved = resolveChanges(body, asked);
  const found = await engine.store.update(name, checkName(id, 'job id'), { ...resolved, by: options.by });
  if (found === undefined) throw new CroreError('NOT_FOUND', `there is no job '${id}' in queue '${name}'`);
  if (!isWaiting(found))
    throw new CroreError('JOB_STARTED', `job '${id}' of queue '${name}' is ${found}: it can no longer be changed`);
}

export async function removeJobs(
  queue: QueueSetup,
  which: string | Filter,
  options: BulkOptions,
): Promise<boolean | number> {
  const act = (ids: string[]) => queue.engine.store.remove(queue.name, ids);
  if (typeof which === 'string') return (await act([which]))[0]!;
  return changeMatching(queue, which, ['done', 'dead', 'cancelled'], 'remove', act, options);
}

/** A single job that cannot move is an error; of many, it stays where it is. */
export async function moveJobs(
  queue: QueueSetup,
  which: string | Filter,
  to: string,
  options: BulkOptions,
): Promise<number | undefined> {
  const { engine, name } = queue;
  const target = checkMove(name, to);
  if (typeof which !== 'string') {
    const act = async (ids: string[]) =>
      (await engine.store.move(name, ids, target, options.by)).map((one) => one === 'moved');
    return changeMatching(queue, which, MOVABLE, 'move', act, options);
  }
  const [outcome] = await engine.store.move(name, [checkName(which, 'job id')], target, options.by);
  if (outcome !== 'moved') throw moveError(name, which, target, outcome!);
  return undefined;
}

async function changeMatching(
  { engine, name }: QueueSetup,
  filter: Filter,
  states: readonly State[],
  what: string,
  act: (ids: string[]) => Promise<boolean[]>,
  options: BulkOptions,
): Promise<number> {
  const resolved = resolveFilter(filter, states, what);
  checkOptions(options, BULK_KNOWN, what);
  checkFunction(options.progress, 'progress');
  return forEachMatching(engine, name, resolved, act, options);
}
