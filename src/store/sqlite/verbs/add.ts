import { CroreError } from '../../../errors.js';
import type { Bytes, JobRef, Need, NewJob, Spec, Unique } from '../../../job/job.js';
import { encodeSpec, isRelated } from '../../../job/spec.js';
import { skipReason } from '../../../job/transitions.js';
import { type AddOutcome, type Capacity, CREATED, FULL } from '../../store.js';
import { checkBatches, joinBatch, openBatch } from '../batches.js';
import type { Row } from '../file/driver.js';
import { closeJob, notifyDependents, removeEnded } from '../finalize.js';
import { HIDDEN, isNeededByJobs, keepRecord, releaseAll } from '../kept-records.js';
import { addPlain, hasNewIds, isPlain } from '../plain-jobs.js';
import { QueueCounters, S, sizeOf, type Tables } from '../tables.js';
import { insertTasks } from '../tasks/plain-tasks.js';

export function push(tables: Tables, queue: number, tasks: readonly Bytes[], limits: Capacity): boolean {
  const counters = new QueueCounters(tables, queue);
  const bytes = tasks.reduce((sum, task) => sum + task.length, 0);
  if (tasks.length > room(counters, limits) || bytes > space(counters, limits)) return false;
  insertTasks(tables, counters, tasks, bytes);
  counters.add('tasks', tasks.length);
  counters.add('ready', tasks.length);
  counters.add('bytes', bytes);
  counters.write();
  return true;
}

export function add(
  tables: Tables,
  queue: number,
  jobs: readonly NewJob[],
  limits: Capacity,
  now: number,
): AddOutcome[] {
  const counters = new QueueCounters(tables, queue);
  const unlimited = limits.count === undefined && limits.bytes === undefined;
  const simple = unlimited && counters.row.watched <= now && jobs.every(isPlain);
  if (simple && hasNewIds(tables, queue, jobs, now)) {
    addPlain(tables, counters, jobs, now);
    counters.write();
    return jobs.map(() => CREATED);
  }
  checkUpstreams(tables, counters.row.name, jobs);
  checkBatches(tables, jobs);
  const outcomes = jobs.map((job) => addOne(tables, counters, job, limits, now));
  counters.write();
  return outcomes;
}

function addOne(tables: Tables, counters: QueueCounters, job: NewJob, limits: Capacity, now: number): AddOutcome {
  if (job.replaceEnded) removeEnded(tables, counters, job.id);
  const existing = taken(tables, counters.queue, job, now);
  if (existing !== undefined) return { outcome: renew(tables, counters, job, existing, now), id: existing };
  const size = sizeOf(job.payload);
  if (room(counters, limits) < 1 || space(counters, limits) < size) return FULL;
  const at = job.at ?? now + (job.delay ?? 0);
  const { needs, unique, batchPolicy } = job.spec;
  const wires = needs ? wire(tables, needs, false) : undefined;
  const waits = wires?.edges.length || batchPolicy !== undefined;
  const state = wires?.failed ? S.ready : waits ? S.blocked : at > now ? S.scheduled : S.ready;
  const n = insert(tables, counters, job, state, at, now);
  counters.event(now, 'added', job.id);
  if (wires?.failed) {
    if (job.spec.batch) joinBatch(tables, n, job.spec.batch);
    const ending = { n, id: job.id, state: 'cancelled' as const, attempt: 0, crashes: 0, outcome: wires.failed };
    closeJob(tables, counters, now, { ...ending, spec: job.spec });
    counters.event(now, 'cancelled', job.id, wires.failed);
    if (job.spec.batch) notifyDependents(tables, counters, now, [ending]);
    return CREATED;
  }
  if (state === S.ready && job.spec.group !== undefined) counters.groups(now).enter(job.spec.group);
  if (wires) connect(tables, n, wires);
  if (isRelated(job.spec)) relate(tables, n, job.spec);
  counters.add(state === S.blocked ? 'blocked' : state === S.scheduled ? 'scheduled' : 'ready', 1);
  counters.add('bytes', size);
  if (unique) lock(tables, counters.queue, unique, job.id, now);
  return CREATED;
}

function relate(tables: Tables, n: number, { parent, batch, batchPolicy }: Spec): void {
  if (batchPolicy !== undefined) openBatch(tables, n, batchPolicy);
  if (batch) joinBatch(tables, n, batch);
  const holder = parent && findUpstream(tables, parent);
  if (holder && holder.state < S.done) keepRecord(tables, n, holder.n);
}

function lock(tables: Tables, queue: number, { key, ttl }: Unique, id: string, now: number): void {
  tables
    .sql('INSERT OR REPLACE INTO keys (queue, key, id, until) VALUES (?, ?, ?, ?)')
    .run(queue, key, id, ttl > 0 ? now + ttl : 0);
}

/** A new job has the unique key of a waiting one: changes that one as the mode says. */
function renew(
  tables: Tables,
  counters: QueueCounters,
  job: NewJob,
  id: string,
  now: number,
): 'duplicate' | 'replaced' | 'extended' {
  const { unique } = job.spec;
  const mode = unique?.mode ?? 'keep';
  if (mode === 'keep' || id === job.id) return 'duplicate';
  const row = tables
    .sql('SELECT n, state, attempt, at, payload FROM jobs WHERE queue = ? AND id = ? AND state < 3')
    .get(counters.queue, id);
  if (!row) return 'duplicate';
  if (mode === 'replace') {
    tables.sql('UPDATE jobs SET payload = ? WHERE n = ?').run(job.payload, row.n!);
    counters.add('bytes', sizeOf(job.payload) - sizeOf(row.payload as string));
  }
  const timed = job.at !== undefined || (job.delay ?? 0) > 0;
  // A job that is already due is not delayed again, even if no sweep or claim has promoted it yet.
  const waits = row.state === S.blocked || (row.state === S.scheduled && (row.at as number) > now);
  if (timed && waits && row.attempt === 0) {
    tables.sql('UPDATE jobs SET at = ? WHERE n = ?').run(job.at ?? now + job.delay!, row.n!);
  }
  if (unique!.ttl > 0) lock(tables, counters.queue, unique!, id, now);
  counters.event(now, 'changed', id);
  return mode === 'replace' ? 'replaced' : 'extended';
}

const INSERT = `INSERT INTO jobs (queue, id, state, priority, seq, created, at, reservation, spec, payload, grp)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

export function insert(
  tables: Tables,
  counters: QueueCounters,
  job: NewJob,
  state: number,
  at: number,
  now: number,
): number {
  const spec = encodeSpec(job.spec);
  const { lastInsertRowid } = tables
    .sql(INSERT)
    .run(
      counters.queue,
      job.id,
      state,
      job.priority,
      state === S.ready ? counters.nextBack() : 0,
      now,
      state === S.ready ? null : at,
      job.spec.reservation,
      spec === '' ? null : spec,
      job.payload,
      job.spec.group ?? null,
    );
  return Number(lastInsertRowid);
}

/** The id of the existing job that makes this one a duplicate. */
function taken(tables: Tables, queue: number, job: NewJob, now: number): string | undefined {
  const record = tables.sql('SELECT n, state, until FROM jobs WHERE queue = ? AND id = ?').get(queue, job.id);
  if (record && !givesWay(tables, record)) return job.id;
  if (!job.fresh) {
    const ended = tables.sql('SELECT 1 FROM ended_ids WHERE queue = ? AND id = ? AND until > ?');
    if (ended.get(queue, job.id, now)) return job.id;
  }
  const { unique } = job.spec;
  if (!unique) return undefined;
  const row = tables.sql('SELECT id, until FROM keys WHERE queue = ? AND key = ?').get(queue, unique.key);
  return row && (row.until === 0 || (row.until as number) > now) ? (row.id as string) : undefined;
}

/** A hidden record that is only there for somebody who waited for it gives way to a new job. */
function givesWay(tables: Tables, { n, state, until }: Row): boolean {
  if ((state as number) < S.done || until !== HIDDEN || isNeededByJobs(tables, n as number)) return false;
  releaseAll(tables, n as number);
  return true;
}

/** Before anything is written, checks that every upstream job exists or comes earlier in the batch. */
function checkUpstreams(tables: Tables, name: string, jobs: readonly NewJob[]): void {
  const seen = new Set<string>();
  for (const job of jobs) {
    for (const need of job.spec.needs ?? []) {
      if ((need.queue === name && seen.has(need.id)) || findUpstream(tables, need)) continue;
      throw new CroreError('UNKNOWN_UPSTREAM', `upstream job '${need.id}' of queue '${need.queue}' does not exist`);
    }
    seen.add(job.id);
  }
}

function findUpstream(tables: Tables, need: JobRef): { n: number; state: number } | undefined {
  const queue = tables.find(need.queue);
  if (queue === undefined) return undefined;
  const row = tables.sql('SELECT n, state FROM jobs WHERE queue = ? AND id = ?').get(queue, need.id);
  return row as { n: number; state: number } | undefined;
}

export interface Wires {
  /** All upstream jobs, ended or not. */
  ups: number[];
  edges: { up: number; on: Need['on'] }[];
  failed?: string;
}

/** What a job that needs these jobs, or waits for them as its children, has to wait for. */
export function wire(tables: Tables, needs: readonly Need[], parked: boolean): Wires {
  const wires: Wires = { ups: [], edges: [] };
  for (const need of needs) {
    const upstream = findUpstream(tables, need);
    // An upstream job of the same batch that was refused because the queue is full counts as cancelled.
    const state = upstream?.state ?? S.cancelled;
    if (upstream) wires.ups.push(upstream.n);
    if (state < S.done) wires.edges.push({ up: upstream!.n, on: need.on });
    else if (state !== S.done && need.on === 'success') {
      wires.failed = skipReason(parked, { id: need.id, state: state === S.dead ? 'dead' : 'cancelled' });
    }
  }
  return wires;
}

export function connect(tables: Tables, n: number, { edges, ups }: Wires): void {
  for (const { up, on } of edges) {
    tables.sql('INSERT OR IGNORE INTO edges (up, down, policy) VALUES (?, ?, ?)').run(up, n, on);
  }
  for (const up of ups) keepRecord(tables, up, n);
}

function room(counters: QueueCounters, limits: Capacity): number {
  if (limits.count === undefined) return Number.POSITIVE_INFINITY;
  return limits.count - (counters.get('blocked') + counters.get('scheduled') + counters.get('ready'));
}

function space(counters: QueueCounters, limits: Capacity): number {
  return limits.bytes === undefined ? Number.POSITIVE_INFINITY : limits.bytes - counters.get('bytes');
}
