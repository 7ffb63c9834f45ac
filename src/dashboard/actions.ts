import type { Engine } from '../engine/engine.js';
import { checkName, checkOptions, describe } from '../engine/input/check.js';
import { resolveLimits } from '../engine/input/limits.js';
import { checkMove, moveError } from '../engine/queue/move.js';
import { extraJob } from '../engine/schedules/schedules.js';
import { CroreError } from '../errors.js';
import { isWaiting, type JobRef } from '../job/job.js';
import { Batch } from '../queue/batch.js';
import { cancelTree, removeTree } from '../queue/tree.js';
import type { Action, ActionResult } from './api.js';

/** Jobs in one request. */
const MOST_IDS = 1_000;

/** Does what somebody asked for; `by` says who, for the history of the jobs. */
export async function act(engine: Engine, asked: unknown, by: string): Promise<ActionResult> {
  const action = checkAction(asked);
  const { store } = engine;
  switch (action.action) {
    case 'retry':
      return changed(await store.rerun(checkName(action.queue, 'queue name'), idsOf(action.ids), ['dead'], by));
    case 'rerun':
      return changed(await store.rerun(checkName(action.queue, 'queue name'), idsOf(action.ids), ENDED, by));
    case 'run-now':
      return runNow(engine, checkName(action.queue, 'queue name'), idsOf(action.ids), by);
    case 'cancel':
      return changed(await store.cancel(checkName(action.queue, 'queue name'), idsOf(action.ids), by));
    case 'remove':
      return changed(await store.remove(checkName(action.queue, 'queue name'), idsOf(action.ids)));
    case 'move':
      return moveJobs(engine, checkName(action.queue, 'queue name'), idsOf(action.ids), action.to, by);
    case 'cancel-tree':
      return { changed: await cancelTree({ engine }, refOf(action), by) };
    case 'remove-tree':
      return { changed: await removeTree({ engine }, refOf(action), by) };
    case 'close-batch':
      await batchOf(engine, action).close();
      return { changed: 1 };
    case 'cancel-members':
      return { changed: await batchOf(engine, action).cancelMembers({ by }) };
    case 'pause':
    case 'resume':
      await store.configure(checkName(action.queue, 'queue name'), { paused: action.action === 'pause' });
      return { changed: 1 };
    case 'obliterate':
      await store.obliterate(checkName(action.queue, 'queue name'));
      return { changed: 1 };
    case 'limits':
      await store.configure(checkName(action.queue, 'queue name'), { limits: resolveLimits(action.limits) });
      return { changed: 1 };
    case 'run-schedule':
      return runSchedule(engine, action.name);
    case 'remove-schedule':
      return changed([await store.schedules.remove(checkName(action.name, 'schedule name'))]);
    default:
      throw new CroreError('BAD_OPTION', `unknown action ${describe((action as { action: unknown }).action)}`);
  }
}

const ENDED = ['done', 'dead', 'cancelled'] as const;
const FIELDS = ['action', 'queue', 'ids', 'limits', 'name', 'id', 'to'] as const;

function checkAction(asked: unknown): Action {
  checkOptions(asked, FIELDS, 'action');
  return asked as Action;
}

function refOf({ queue, id }: { queue: string; id: string }): JobRef {
  return { queue: checkName(queue, 'queue name'), id: checkName(id, 'job id') };
}

function batchOf(engine: Engine, action: { queue: string; id: string }): Batch {
  const { queue, id } = refOf(action);
  return new Batch({ engine, name: queue }, id);
}

function idsOf(ids: unknown): string[] {
  if (!Array.isArray(ids) || ids.length === 0 || ids.length > MOST_IDS)
    throw new CroreError('BAD_OPTION', `ids must be a list of 1 to ${MOST_IDS} job ids`);
  return ids.map((id) => checkName(id, 'job id'));
}

function changed(applied: readonly boolean[]): ActionResult {
  return { changed: applied.filter(Boolean).length };
}

async function runNow({ store }: Engine, queue: string, ids: readonly string[], by: string): Promise<ActionResult> {
  const found = await Promise.all(ids.map((id) => store.update(queue, id, { delay: 0, by })));
  return changed(found.map((state) => state !== undefined && isWaiting(state)));
}

/** A single job that cannot move is an error that says why. */
async function moveJobs(
  { store }: Engine,
  queue: string,
  ids: readonly string[],
  to: unknown,
  by: string,
): Promise<ActionResult> {
  const target = checkMove(queue, to);
  const outcomes = await store.move(queue, ids, target, by);
  const [first] = outcomes;
  if (ids.length === 1 && first !== 'moved') throw moveError(queue, ids[0]!, target, first!);
  return changed(outcomes.map((outcome) => outcome === 'moved'));
}

async function runSchedule(engine: Engine, name: string): Promise<ActionResult> {
  const { store } = engine;
  checkName(name, 'schedule name');
  const schedule = (await store.schedules.list()).find((one) => one.name === name);
  if (!schedule) throw new CroreError('NOT_FOUND', `there is no schedule '${name}'`);
  const job = extraJob(schedule, store.now());
  const outcome = await engine.add(schedule.queue, job, {});
  return { changed: 1, job: { queue: schedule.queue, id: 'id' in outcome ? outcome.id : job.id } };
}

const LOGGED = ['action', 'queue', 'to', 'name', 'id', 'limits', 'filter', 'group'] as const;

/** For the log: what was asked for, without lists of ids and without anything that nobody asked for. */
export function describeAction(asked: Record<string, unknown>): object {
  const known = Object.fromEntries(LOGGED.flatMap((key) => (asked[key] === undefined ? [] : [[key, asked[key]]])));
  const { ids } = asked;
  return Array.isArray(ids) ? { ...known, jobs: ids.length, first: ids[0] } : known;
}
