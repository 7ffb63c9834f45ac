import type { Engine } from '../../../engine/engine.js';
import { rateText } from '../../../engine/input/limits.js';
import { type BatchCounts, isTerminal, type Job } from '../../../job/job.js';
import { attemptText } from '../../../job/spec.js';
import type { Counts, QueueLimits, Store, WorkerInfo } from '../../../store/store.js';

/** Ready jobs that are looked through for the place of one, and counted at most. */
const MOST_LOOKED = 2_000;
const MOST_AHEAD = 500;
const PAGE = 500;
/** Upstream jobs whose trouble is told. */
const MOST_TROUBLES = 5;
/** Active jobs that are looked through for those of a group. */
const MOST_ACTIVE = 500;

/** What is known of the queue of a job. */
interface Situation {
  counts: Counts;
  paused: boolean;
  limits: QueueLimits;
  workers: readonly WorkerInfo[];
}

/** Why a job is not running now, in words; several reasons may hold at once. Empty if it runs or has ended. */
export async function reasonsOf(engine: Engine, job: Job, openNeeds: readonly Job[]): Promise<string[]> {
  if (job.state === 'dead' && job.crashes > 0) return [crashed(job)];
  if (isTerminal(job.state) || job.state === 'active') return [];
  const { store } = engine;
  const [counts, { paused, limits, breakerState }, workers] = await Promise.all([
    store.count(job.queue),
    store.settings(job.queue),
    store.workers(job.queue),
  ]);
  const situation = { counts, paused, limits, workers };
  const now = store.now();
  if (job.spec.expires > 0 && now > job.createdAt + job.spec.expires) return [EXPIRED];
  const queueReasons = [
    ...(paused ? ['The queue is paused.'] : []),
    ...(breakerState?.until === undefined ? [] : [brokenUntil(breakerState.until)]),
    ...(workers.length === 0 ? [NO_WORKER] : []),
  ];
  if (job.state === 'blocked')
    return [
      ...blockedBy(job, openNeeds.length),
      ...openNeeds.flatMap(troubleOf).slice(0, MOST_TROUBLES),
      ...queueReasons,
    ];
  if (job.state === 'scheduled') return [...((job.runAt ?? 0) > now ? [dueAt(job)] : []), ...queueReasons];
  return queueReasons.length > 0 ? queueReasons : readyReasons(engine, job, situation);
}

const EXPIRED = 'It has expired: the next worker that claims it cancels it.';
const NO_WORKER = 'No worker serves the queue: start one with queue.work() or `crore work`.';

function brokenUntil(until: number): string {
  return `The breaker of the queue is open after failures in a row: it lets the next job through at ${timeText(until)}.`;
}

function blockedBy({ batch, children }: Job, open: number): string[] {
  if (batch && !children?.children.length) return batchReasons(batch);
  const [one, many] = children?.children.length ? ['one child', 'children'] : ['one job', 'jobs'];
  return [`It waits for ${open === 1 ? `${one} that has` : `${open} ${many} that have`} not ended.`];
}

function batchReasons({ open, total, done, dead, cancelled }: BatchCounts): string[] {
  const pending = total - done - dead - cancelled;
  const members = `${pending} of ${total} members of its batch ${pending === 1 ? 'has' : 'have'} not ended.`;
  const closing = 'Its batch is open: it runs when the batch has been closed and all members have ended.';
  return [...(open ? [closing] : []), ...(pending > 0 ? [members] : [])];
}

/** What is wrong with an upstream job, if anything is. */
function troubleOf({ queue, id, state, attempt, error, spec, runAt }: Job): string[] {
  const name = `'${id}' of queue '${queue}'`;
  if (state === 'scheduled' && attempt > 0 && error !== undefined)
    return [`${name} has failed ${times(attempt, spec.attempts)} and is tried again at ${timeText(runAt)}: ${error}`];
  return state === 'blocked' ? [`${name} waits for other jobs itself.`] : [];
}

/** `2 of 5 times`, or `2 times` if there is no limit. */
function times(attempt: number, attempts: number): string {
  const text = attemptText(attempt, attempts);
  return text === '1' ? 'once' : `${text} times`;
}

function crashed({ crashes, error }: Job): string {
  const times = crashes === 1 ? 'a worker was lost' : `${crashes} workers were lost`;
  return `It was in hand when ${times}, so it is not tried again: ${error ?? ''}. Retry it when the handler has been fixed.`;
}

function timeText(at = 0): string {
  return `${new Date(at).toISOString().replace('T', ' ').slice(0, 19)} UTC`;
}

function dueAt({ attempt, runAt, spec, error }: Job): string {
  const due = timeText(runAt);
  if (attempt === 0 || error === undefined) return `It is not due before ${due}.`;
  return `Attempt ${attemptText(attempt, spec.attempts)} failed; the next one is due at ${due}.`;
}

async function readyReasons(engine: Engine, job: Job, situation: Situation): Promise<string[]> {
  const { counts, limits, workers } = situation;
  const found: string[] = [];
  if (limits.concurrency !== undefined && counts.active >= limits.concurrency)
    found.push(`The queue is at its limit of ${limits.concurrency} running at once.`);
  if (job.spec.group !== undefined) found.push(...(await groupReasons(engine, job, limits)));
  const slots = slotsOf(workers);
  if (slots !== undefined && counts.active >= slots) found.push(slotsText(slots, workers.length));
  const ahead = await aheadOf(engine, job);
  if (ahead !== 0) found.push(aheadText(ahead, job));
  // A rate is a reason only for the job that is next.
  else if (limits.rate) found.push(`The queue starts at most ${rateText(limits.rate)}.`);
  if (job.crashes > 0)
    found.push('A worker was lost with it, so it runs alone, when a worker has nothing else in hand.');
  return found.length > 0 ? found : ['Nothing holds it back: a worker should claim it within a moment.'];
}

function slotsText(slots: number, workers: number): string {
  const of = workers === 1 ? 'the only worker' : `the ${workers} workers`;
  return slots === 1
    ? `The slot of ${of} of the queue is taken.`
    : `All ${slots} slots of ${of} of the queue are taken.`;
}

function aheadText(ahead: number | undefined, { spec }: Job): string {
  const which = spec.group === undefined ? '' : ' of its group';
  if (ahead === undefined) return `More than ${MOST_AHEAD} ready jobs${which} are ahead of it.`;
  return ahead === 1 ? `1 ready job${which} is ahead of it.` : `${ahead} ready jobs${which} are ahead of it.`;
}

async function groupReasons({ store }: Engine, job: Job, { group }: QueueLimits): Promise<string[]> {
  const found: string[] = [];
  if (group?.rate) found.push(`Its group starts at most ${rateText(group.rate)}.`);
  if (group?.ordered) found.push(...(await orderReasons(store, job)));
  if (group?.concurrency === undefined) return found;
  const { jobs } = await store.list(job.queue, { state: 'active', limit: MOST_ACTIVE });
  const running = jobs.filter(({ spec }) => spec.group === job.spec.group).length;
  if (running >= group.concurrency) found.push(`Its group is at its limit of ${group.concurrency} running at once.`);
  return found;
}

/** The job of an ordered group that has started and not ended, if it is among those that are looked through. */
async function orderReasons(store: Store, { id, queue, spec }: Job): Promise<string[]> {
  for (const state of ['active', 'scheduled'] as const) {
    const { jobs } = await store.list(queue, { state, limit: MOST_ACTIVE });
    const open = jobs.find((job) => job.spec.group === spec.group && (state === 'active' || job.attempt > 0));
    if (open && open.id !== id) return [`Its group is ordered, and job ${open.id} of it has not ended.`];
  }
  return [];
}

/** Undefined if a worker does not say how many jobs it runs at once. */
function slotsOf(workers: readonly WorkerInfo[]): number | undefined {
  let slots = 0;
  for (const { info } of workers) {
    const concurrency = /"concurrency":(\d+)/.exec(info)?.[1];
    if (concurrency === undefined) return undefined;
    slots += Number(concurrency);
  }
  return slots;
}

/** How many ready jobs of its group, or without one, are ahead of it; undefined if more than are looked through. */
async function aheadOf({ store }: Engine, job: Job): Promise<number | undefined> {
  let [cursor, ahead]: [string | undefined, number] = [undefined, 0];
  for (let looked = 0; looked < MOST_LOOKED; looked += PAGE) {
    const page = await store.list(job.queue, { state: 'ready', limit: PAGE, cursor });
    for (const { id, spec } of page.jobs) {
      if (id === job.id) return ahead;
      if (spec.group === job.spec.group && ++ahead > MOST_AHEAD) return undefined;
    }
    cursor = page.cursor;
    if (cursor === undefined) return 0;
  }
  return undefined;
}
