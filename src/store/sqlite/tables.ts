import { type Body, type Job, STATES, type State } from '../../job/job.js';
import { readError } from '../../job/reported-error.js';
import { decodeSpec } from '../../job/spec.js';
import type { Counts, EventType } from '../store.js';
import type { Database, Row, Statement, Value } from './file/driver.js';
import { Groups } from './groups.js';

/** Indexes in STATES, as stored in the `state` column. */
export const S = { blocked: 0, scheduled: 1, ready: 2, active: 3, done: 4, dead: 5, cancelled: 6 } as const;

/** A database with its prepared statements. */
export class Tables {
  readonly #statements = new Map<string, Statement>();
  readonly #arrays = new Map<string, { all(...values: Value[]): Value[][] }>();

  /** Queues with events recorded since the last check. */
  readonly queuesWithNewEvents = new Set<string>();

  constructor(readonly db: Database) {}

  sql(text: string): Statement {
    let statement = this.#statements.get(text);
    if (!statement) {
      statement = this.db.prepare(text);
      this.#statements.set(text, statement);
    }
    return statement;
  }

  /** The same, with rows as arrays. */
  arrays(text: string): { all(...values: Value[]): Value[][] } {
    const known = this.#arrays.get(text);
    if (known) return known;
    const statement = this.db.prepare(text);
    statement.setReturnArrays(true);
    const typed = statement as unknown as { all(...values: Value[]): Value[][] };
    this.#arrays.set(text, typed);
    return typed;
  }

  find(name: string): number | undefined {
    return this.sql('SELECT n FROM queues WHERE name = ?').get(name)?.n as number | undefined;
  }

  /** The number of a queue, created if new. */
  ensure(name: string): number {
    return this.find(name) ?? Number(this.sql('INSERT INTO queues (name) VALUES (?)').run(name).lastInsertRowid);
  }

  row(queue: number): QueueRow {
    return this.sql('SELECT * FROM queues WHERE n = ?').get(queue) as unknown as QueueRow;
  }

  name(queue: number): string {
    return this.row(queue).name;
  }
}

export type QueueRow = Counts & {
  n: number;
  name: string;
  paused: number;
  swept: number | null;
  front: number;
  back: number;
  claims: number;
  bytes: number;
  tasks: number;
  /** Ready jobs that wait in a group. */
  grouped: number;
  /** JSON of the limits, if there are any. */
  pace: string | null;
  /** The last turn given to a group. */
  turn: number;
  /** The rate window of the queue: when it began, and how many entries have started in it. */
  opened: number;
  started: number;
  /** Until when events are recorded. */
  watched: number;
  /** Dead jobs dropped because there were too many. */
  dropped: number;
  /** JSON of the breaker, if there is one. */
  breaker: string | null;
  /** Failed attempts in a row, as far as a breaker counts them. */
  failed: number;
  /** Until when the breaker is open; 0 if it is closed. */
  broken: number;
  /** The token of the entry that the open breaker let through, as in its row. */
  trial: string | null;
};

const COUNTERS = ['tasks', 'bytes', 'front', 'back', 'claims', 'grouped', 'turn', 'dropped', ...STATES] as const;
type Counter = (typeof COUNTERS)[number];

/** Changes to the counters of a queue, collected during a call and written once. */
export class QueueCounters {
  readonly #changes = new Map<Counter, number>();
  #groups: Groups | undefined;
  readonly row: QueueRow;

  constructor(
    private readonly tables: Tables,
    readonly queue: number,
  ) {
    this.row = tables.row(queue);
  }

  add(counter: Counter, by: number): void {
    if (by !== 0) this.#changes.set(counter, (this.#changes.get(counter) ?? 0) + by);
  }

  /** The counter including pending changes. */
  get(counter: Counter): number {
    return this.row[counter] + (this.#changes.get(counter) ?? 0);
  }

  move(from: State, to: State): void {
    this.add(from, -1);
    this.add(to, 1);
  }

  nextBack(): number {
    this.add('back', 1);
    return this.get('back');
  }

  nextFront(): number {
    this.add('front', -1);
    return this.get('front');
  }

  /** Records an event of a job, if events are being recorded. */
  event(now: number, type: EventType, id: string, info: string | number = ''): void {
    if (this.row.watched <= now) return;
    this.tables.queuesWithNewEvents.add(this.row.name);
    this.tables
      .sql('INSERT INTO events (queue, type, id, at, info) VALUES (?, ?, ?, ?, ?)')
      .run(this.queue, type, id, now, String(info));
  }

  /** The same event of many jobs: with a statement for each, working with a listener takes a tenth more CPU time. */
  events(now: number, type: EventType, ids: readonly string[], info: string | number = ''): void {
    if (this.row.watched <= now || ids.length === 0) return;
    this.tables.queuesWithNewEvents.add(this.row.name);
    this.tables
      .sql('INSERT INTO events (queue, type, id, at, info) SELECT ?, ?, value, ?, ? FROM json_each(?)')
      .run(this.queue, type, now, String(info), JSON.stringify(ids));
  }

  /** The groups of the queue; their changes are written together with the counters. */
  groups(now: number): Groups {
    this.#groups ??= new Groups(this.tables, this, now);
    return this.#groups;
  }

  write(): void {
    this.#groups?.flush();
    const changes = [...this.#changes].filter(([, by]) => by !== 0);
    if (changes.length === 0) return;
    const sets = changes.map(([counter]) => `${counter} = ${counter} + ?`).join(', ');
    this.tables.sql(`UPDATE queues SET ${sets} WHERE n = ?`).run(...changes.map(([, by]) => by), this.queue);
    for (const [counter, by] of changes) this.row[counter] += by;
    this.#changes.clear();
  }
}

/** The counters of each queue involved in a call: upstream jobs and dependents may be in any queue. */
export class CountersByQueue {
  readonly #all = new Map<number, QueueCounters>();

  constructor(
    private readonly tables: Tables,
    private readonly own: QueueCounters,
  ) {
    this.#all.set(own.queue, own);
  }

  of(queue: number): QueueCounters {
    const known = this.#all.get(queue);
    if (known) return known;
    const counters = new QueueCounters(this.tables, queue);
    this.#all.set(queue, counters);
    return counters;
  }

  /** Writes all but those of the caller. */
  writeOthers(): void {
    for (const counters of this.#all.values()) if (counters !== this.own) counters.write();
  }
}

/** Columns of a whole job. */
export const JOB_COLUMNS =
  'n, id, state, priority, seq, attempt, crashes, created, at, worker, token, spec, outcome, payload, grp, ran';

export function toJob(queue: string, row: Row): Job {
  const state = STATES[row.state as number]!;
  const job: Job = {
    queue,
    id: row.id as string,
    state,
    payload: row.payload as Body,
    priority: row.priority as number,
    attempt: row.attempt as number,
    crashes: row.crashes as number,
    createdAt: row.created as number,
    spec: decodeSpec((row.spec as string | null) ?? ''),
  };
  const at = row.at as number;
  if (state === 'blocked' || state === 'scheduled') job.runAt = at;
  else if (state === 'ready' && row.ran) job.runAt = Number(row.ran);
  else if (state === 'active') Object.assign(job, { startedAt: at, worker: row.worker, token: leaseToken(row) });
  else if (state !== 'ready') job.finishedAt = at;
  if (state === 'done' && row.ran) Object.assign(job, readRan(row.ran as string));
  applyOutcome(job, row.outcome ?? null);
  return job;
}

/** The start of a done job and its worker, as `RAN` writes them. */
function readRan(ran: string): { startedAt: number; worker: string } {
  const cut = ran.indexOf(' ');
  return { startedAt: Number(ran.slice(0, cut)), worker: ran.slice(cut + 1) };
}

/** Where and when an active job runs, as kept when it is done. While a job is ready, the column says since when, if not since it was added. */
export const RAN = "at || ' ' || worker";

function applyOutcome(job: Job, outcome: Value): void {
  if (outcome === null) return;
  if (job.state === 'done') job.result = outcome as Body;
  else if (job.state !== 'active') Object.assign(job, readError(outcome as string));
}

/**
 * The token of a lease: attempt (0 for a raw task), row number, the row's own token (claim sequence and nonce), and a
 * hash of the job's id, which reveals a token of another job without a query.
 */
export function leaseToken(row: Row): string {
  return makeToken((row.attempt as number) ?? 0, row.n as number, row.token as string, (row.id as string) ?? '');
}

export function makeToken(attempt: number | string, n: number | string, claim: string, id: string): string {
  return `${attempt}.${n}.${claim}.${markOf(id)}`;
}

function markOf(id: string): string {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = (Math.imul(hash, 31) + id.charCodeAt(i)) | 0;
  return (hash >>> 0).toString(36);
}

/** The parts of a token, as far as they can be parsed. */
export function splitToken(token: string): { attempt: number; n: number; nonce: string; claim: number } {
  const first = token.indexOf('.');
  const second = token.indexOf('.', first + 1);
  const nonce = token.slice(second + 1, token.lastIndexOf('.'));
  return {
    attempt: Number(token.slice(0, first)),
    n: Number(token.slice(first + 1, second)),
    nonce,
    claim: Number.parseInt(nonce, 10),
  };
}

export function sizeOf(body: Body): number {
  return typeof body === 'string' ? Buffer.byteLength(body) : body.length;
}
