import type { ServiceImpl } from '@connectrpc/connect';
import { deadJobs } from '../../engine/dead-jobs.js';
import { chunks } from '../../engine/engine.js';
import { checkInteger, checkName, checkOneOf } from '../../engine/input/check.js';
import { checkPark } from '../../engine/input/children.js';
import { resolveChanges } from '../../engine/input/options.js';
import { checkMove } from '../../engine/queue/move.js';
import { returnLease } from '../../engine/raw-task.js';
import { CroreError } from '../../errors.js';
import { type Entry, isWaiting, type Job, type NewJob, type Terminal } from '../../job/job.js';
import { traceContext } from '../../job/trace-context.js';
import { ClaimStatus, type Crore } from '../../proto/crore/v1/crore_pb.js';
import { fromCounts, fromEntry, fromJob, fromLease, fromState, toSettlement, toState } from '../../store/grpc/codec.js';
import { MOVE_OUTCOMES } from '../../store/grpc/move-outcomes.js';
import { fromMs, fromTime, toMs } from '../../store/grpc/times.js';
import { type AddOutcome, MAX_BATCH, type WorkerInfo, type WorkerSession } from '../../store/store.js';
import type { ServerContext } from '../context.js';
import { AwaitedJobs } from './awaited-jobs.js';
import { getFitting, listFitting, MOST_ANSWERED, sizeOf } from './pages.js';
import { bodyOf, checkProgress, durationOf, idsOf, leaseOf, limitsOf, newJob, queueName, timeOf } from './requests.js';
import { scheduleService } from './schedule-service.js';
import { ADD_OUTCOMES } from './settlements.js';
import { listenTo } from './signal-stream.js';

const STATUSES = { ok: ClaimStatus.OK, paused: ClaimStatus.PAUSED, lost: ClaimStatus.LOST };
const ENDED: readonly Terminal[] = ['done', 'dead', 'cancelled'];
const LONGEST_LEASE = 86_400_000;
const LONGEST_CURSOR = 4_096;
/** How many dead jobs to read at once: they come with their payloads, though only the ids are needed. */
const DEAD_AT_ONCE = 50;

/** Every call of crore.v1 except the worker stream: decodes, makes one call to the engine or store, and encodes. */
export function croreService(context: ServerContext): Omit<ServiceImpl<typeof Crore>, 'work'> {
  const { engine, limits } = context;
  const { store } = engine;
  const awaited = new AwaitedJobs();
  return {
    ...scheduleService(context),
    info: () => ({
      version: context.version,
      now: fromTime(store.now()),
      warnings: [...store.warnings],
      maxMessage: BigInt(limits.message),
      maxParallelClaims: store.maxParallelClaims,
    }),

    add: async ({ queue, jobs, limits: asked }, { requestHeader }) => {
      queueName(queue);
      const now = store.now();
      const trace = traceContext(requestHeader.get('traceparent'), requestHeader.get('tracestate'));
      const all = jobs.map((job) => newJob(queue, job, now, limits.message, trace));
      context.keepSwept(queue);
      const outcomes = await engine.addMany(queue, all, limitsOf(asked));
      return { results: resultsOf(outcomes, all) };
    },
    addFromSource: async ({ queue, jobs, source, from, to }) => {
      queueName(queue);
      const now = store.now();
      const all = jobs.map((job) => newJob(queue, job, now, limits.message));
      if (all.length > MAX_BATCH) throw new CroreError('BAD_OPTION', `${all.length} jobs, the limit is ${MAX_BATCH}`);
      context.keepSwept(queue);
      const step = { source: checkName(source, 'source'), from, to };
      const outcomes = await store.sources.add(queue, all, step);
      return outcomes === 'stale' ? { stale: true } : { results: resultsOf(outcomes, all) };
    },
    sourcePosition: async ({ queue, source }) => ({
      position: await store.sources.position(queueName(queue), checkName(source, 'source')),
    }),
    isPaused: async ({ queue }) => ({ paused: (await store.settings(queueName(queue))).paused }),
    push: async ({ queue, tasks, limits: asked }) => {
      queueName(queue);
      context.keepSwept(queue);
      return { accepted: BigInt(await engine.pushMany(queue, tasks, limitsOf(asked))) };
    },

    get: async ({ queue, ids }) => {
      const jobs = await getFitting(store, queueName(queue), idsOf(ids));
      return { found: jobs.map((job) => ({ job: job && fromJob(job) })) };
    },
    list: async ({ queue, state, limit, cursor }) => {
      const most = limit === 0 ? 100 : checkInteger(limit, 'limit', 1, MAX_BATCH);
      if (cursor.length > LONGEST_CURSOR)
        throw new CroreError('BAD_OPTION', 'invalid cursor: it was not returned by List');
      const known = { state: toState(state), limit: most, cursor: cursor === '' ? undefined : cursor };
      const page = await listFitting(store, queueName(queue), known);
      return { jobs: page.jobs.map(fromJob), cursor: page.cursor ?? '' };
    },
    stats: async ({ queues }) => {
      if (queues.length > MAX_BATCH)
        throw new CroreError('BAD_OPTION', `${queues.length} queues at once, the limit is ${MAX_BATCH}`);
      const names = queues.length > 0 ? queues.map(queueName) : await store.queues();
      return { queues: await Promise.all(names.map((name) => statsOf(context, name))) };
    },
    count: async ({ queue }) => ({ counts: fromCounts(await store.count(queueName(queue))) }),
    queues: async () => ({ queues: await store.queues() }),
    workers: async ({ queue }) => ({ workers: (await store.workers(queueName(queue))).map(workerOf) }),

    dependents: async ({ queue, id, limit }) => {
      const most = limit === 0 ? 100 : checkInteger(limit, 'limit', 1, MAX_BATCH);
      const { jobs, total } = await store.dependents(queueName(queue), checkName(id, 'job id'), most);
      return { jobs, total: BigInt(total) };
    },

    closeBatch: async ({ queue, id }) => {
      const state = await store.batches.close(queueName(queue), checkName(id, 'job id'));
      return { state: state === undefined ? 0 : fromState(state) };
    },
    listBatchMembers: async ({ queue, id, limit, cursor }) => {
      const most = limit === 0 ? 100 : checkInteger(limit, 'limit', 1, MAX_BATCH);
      if (!/^\d{0,20}$/.test(cursor))
        throw new CroreError('BAD_OPTION', 'invalid cursor: it was not returned by ListBatchMembers');
      const asked = { limit: most, ...(cursor === '' ? {} : { cursor }) };
      return store.batches.openMembers(queueName(queue), checkName(id, 'job id'), asked);
    },

    cancel: async ({ queue, ids, by }) => ({ cancelled: await store.cancel(queueName(queue), idsOf(ids), by) }),
    listDead: async ({ queue, limit }) => {
      const most = limit === 0 ? 100 : checkInteger(limit, 'limit', 1, MAX_BATCH);
      const jobs: Job[] = [];
      let bytes = 0;
      for await (const job of deadJobs(engine, queue === '' ? undefined : [queueName(queue)])) {
        bytes += sizeOf(job);
        if (bytes > MOST_ANSWERED && jobs.length > 0) break;
        if (jobs.push(job) >= most) break;
      }
      return { jobs: jobs.map(fromJob) };
    },
    retryDead: async ({ queue, ids, by }) => ({
      retried: await onDead(context, queueName(queue), ids, (page) => store.rerun(queue, page, ['dead'], by)),
    }),
    removeDead: async ({ queue, ids }) => ({
      removed: await onDead(context, queueName(queue), ids, (page) => removeDead(context, queue, page)),
    }),
    pause: async ({ queue }) => {
      await store.configure(queueName(queue), { paused: true });
      return {};
    },
    resume: async ({ queue }) => {
      await store.configure(queueName(queue), { paused: false });
      return {};
    },
    obliterate: async ({ queue }) => {
      await store.obliterate(queueName(queue));
      return {};
    },

    join: async ({ queue, worker, lease, info }) => {
      context.keepSwept(queueName(queue));
      const ms = durationOf(toMs(lease), 'lease', 1, LONGEST_LEASE);
      await store.join(queue, checkName(worker, 'worker'), { lease: ms, info: info.slice(0, 4_096) });
      return {};
    },
    heartbeat: async ({ sessions }) => ({ alive: await store.heartbeat(sessions.map(sessionOf)) }),
    leave: async ({ queue, worker, onlyIfExpired }) => {
      await store.leave(queueName(queue), checkName(worker, 'worker'), onlyIfExpired);
      return {};
    },
    leases: async ({ queue, worker }) => ({
      leases: (await store.leasesOf(queueName(queue), checkName(worker, 'worker'))).map(fromLease),
    }),
    claim: async ({ session, n }) => {
      if (!session) throw new CroreError('BAD_OPTION', 'claim needs a session');
      const claim = await store.claim(sessionOf(session), checkInteger(n, 'n', 1, MAX_BATCH));
      const { status, nextAt } = claim;
      const entries = await fitting(context, session.queue, claim.entries);
      const more = claim.more || entries.length < claim.entries.length;
      return { status: STATUSES[status], entries: entries.map(fromEntry), more, nextAt: fromTime(nextAt) };
    },
    settle: async ({ queue, settlements }) => {
      queueName(queue);
      if (settlements.length > MAX_BATCH)
        throw new CroreError('BAD_OPTION', `${settlements.length} settlements at once, the limit is ${MAX_BATCH}`);
      for (const { lease } of settlements) leaseOf(lease);
      const all = settlements.map((one) => toSettlement(one, queue));
      for (const settlement of all) checkPark(settlement);
      return { applied: await store.settle(queue, all) };
    },
    recordProgress: async ({ queue, lease, progress, log }) => ({
      applied: await store.recordProgress(queueName(queue), leaseOf(lease), {
        progress: progress === undefined ? undefined : checkProgress(progress, limits.message),
        log,
      }),
    }),
    reportSuccess: async ({ queue, ids }) => ({ applied: await store.reportSuccess(queueName(queue), idsOf(ids)) }),
    remove: async ({ queue, ids }) => ({ applied: await store.remove(queueName(queue), idsOf(ids)) }),
    rerun: async ({ queue, ids, from, by }) => {
      const states = from.length === 0 ? ENDED : from.map((state) => checkOneOf(toState(state), 'from', ENDED));
      return { applied: await store.rerun(queueName(queue), idsOf(ids), states, by) };
    },
    move: async ({ queue, ids, to, by }) => {
      checkMove(queueName(queue), to);
      return {
        outcomes: (await store.move(queue, idsOf(ids), to, by)).map((outcome) => MOVE_OUTCOMES.indexOf(outcome) + 1),
      };
    },
    update: async ({ queue, id, payload, priority, time, by }) => {
      const asked = { priority, ...timeOf(time) };
      const changes = resolveChanges(bodyOf(payload, `payload for queue '${queue}'`, limits.message), asked);
      const found = await store.update(queueName(queue), checkName(id, 'job id'), { ...changes, by });
      return { applied: found !== undefined && isWaiting(found), found: found === undefined ? 0 : fromState(found) };
    },
    sweep: async ({ queue, lease, every }) => {
      const ms = durationOf(toMs(lease), 'lease', 1, LONGEST_LEASE);
      const {
        lost,
        more,
        droppedDead = 0,
      } = await store.sweep(queueName(queue), { lease: ms, every: toMs(every) ?? 0 });
      return {
        lost: lost.map((one) => ({ entry: fromEntry(one), reservation: one.why === 'reservation' })),
        more,
        droppedDead: BigInt(droppedDead),
      };
    },
    watchForEnd: async ({ queue, ids }) => {
      awaited.add(queueName(queue), idsOf(ids));
      await store.watchForEnd(queue, ids);
      return {};
    },
    subscribe: ({ queue }, { signal }) => listenTo(store, awaited, queueName(queue), signal),
  };
}

/** Keeps as many entries as one message should hold; returns the rest to the front of the queue. */
async function fitting({ engine }: ServerContext, queue: string, entries: Entry[]): Promise<Entry[]> {
  let bytes = 0;
  const cut = entries.findIndex(({ job, task }, i) => {
    bytes += (job ? job.payload : task!).length;
    return bytes > MOST_ANSWERED && i > 0;
  });
  if (cut < 0) return entries;
  const back = entries.slice(cut).map(returnLease);
  await engine.store.settle(queue, back);
  return entries.slice(0, cut);
}

function sessionOf({
  queue,
  worker,
  lease,
}: {
  queue: string;
  worker: string;
  lease?: Parameters<typeof toMs>[0];
}): WorkerSession {
  return {
    queue: queueName(queue),
    worker: checkName(worker, 'worker'),
    lease: durationOf(toMs(lease), 'lease', 1, LONGEST_LEASE),
  };
}

function workerOf({ id, deadline, holds, info }: WorkerInfo) {
  return { id, deadline: fromTime(Math.max(0, deadline)), holds: BigInt(holds), info };
}

function resultsOf(outcomes: readonly AddOutcome[], jobs: readonly NewJob[]) {
  return outcomes.map((one, i) => ({ outcome: ADD_OUTCOMES[one.outcome], id: 'id' in one ? one.id : jobs[i]!.id }));
}

async function statsOf({ engine }: ServerContext, name: string) {
  const { store } = engine;
  const [counts, paused, first, workers] = await Promise.all([
    store.count(name),
    store.settings(name).then(({ paused }) => paused),
    store.list(name, { state: 'ready', limit: 1 }),
    store.workers(name),
  ]);
  const oldest = first.jobs[0];
  return {
    name,
    counts: fromCounts(counts),
    oldest: oldest && fromMs(Math.max(0, store.now() - oldest.createdAt)),
    workers: workers.map(workerOf),
    paused,
  };
}

/** Applies an action to these dead jobs, or to all dead jobs of a queue, page by page; returns how many it affected. */
async function onDead(
  { engine }: ServerContext,
  queue: string,
  ids: readonly string[],
  act: (page: readonly string[]) => Promise<boolean[]>,
): Promise<bigint> {
  let count = 0;
  for (const page of chunks(ids, () => 0)) count += (await act(idsOf(page))).filter(Boolean).length;
  if (ids.length > 0) return BigInt(count);
  for (;;) {
    const { jobs } = await engine.store.list(queue, { state: 'dead', limit: DEAD_AT_ONCE });
    const done = jobs.length === 0 ? 0 : (await act(jobs.map(({ id }) => id))).filter(Boolean).length;
    if (done === 0) return BigInt(count);
    count += done;
  }
}

/** Removes dead jobs only: other ended jobs keep their records. */
async function removeDead({ engine }: ServerContext, queue: string, ids: readonly string[]): Promise<boolean[]> {
  const jobs = await engine.store.get(queue, ids);
  const dead = ids.filter((_id, i) => jobs[i]?.state === 'dead');
  return dead.length === 0 ? [] : engine.store.remove(queue, dead);
}
