/**
 * What the dashboard's page and its handler say to each other: types only, shared by both. Times are milliseconds since 1970,
 * durations milliseconds. Every view is read with `GET api/VIEW?PARAMETERS`, or followed with `GET api/live?view=VIEW&PARAMETERS`.
 */
import type { Attempt } from '../job/attempt.js';
import type { BatchCounts, State } from '../job/job.js';
import type { TimedLine } from '../job/timed-lines.js';
import type { Counts, QueueLimits } from '../store/store.js';

/** What somebody may do: look, or look and act. */
export type Access = 'read' | 'write';

/** Views by name, with their parameters (all texts in the URL) and their content. */
export interface Views {
  session: { parameters: Record<never, string>; content: SessionView };
  overview: { parameters: OverviewParameters; content: OverviewView };
  queue: { parameters: { name: string }; content: QueueView };
  jobs: { parameters: JobsParameters; content: JobsView };
  job: { parameters: { queue: string; id: string }; content: JobView };
  dead: { parameters: { queue?: string }; content: DeadView };
  workers: { parameters: { queue?: string }; content: WorkersView };
  schedules: { parameters: { queue?: string }; content: SchedulesView };
  history: { parameters: { queue?: string; range: HistoryRange }; content: HistoryView };
  find: { parameters: { id: string; after?: string }; content: FoundView };
  flows: { parameters: Record<never, string>; content: FlowsView };
  flow: { parameters: { id: string }; content: FlowView };
  rings: { parameters: Record<never, string>; content: RingsView };
  ring: { parameters: { name: string; after?: string }; content: RingView };
}
export type ViewName = keyof Views;

export interface SessionView {
  access: Access;
  version: string;
  /** `sqlite`, `redis`, or another scheme of a store's URL. */
  store: string;
  /** Where the jobs are, without secrets. */
  url?: string;
  /** There is somebody to log out: access came with a log-in. */
  loggedIn: boolean;
  now: number;
}

export interface OverviewParameters {
  /** Queues whose name contains this. */
  search?: string;
  /** The last name of the previous page. */
  after?: string;
}

export interface OverviewView {
  now: number;
  /** What somebody should look at, most urgent first. */
  attention: Attention[];
  /** A page of queues, by name. */
  queues: QueueRow[];
  /** Queues in the store, and those that match the search. */
  total: number;
  matching: number;
  /** There are more queues after the last one. */
  more: boolean;
  /** Sums over all queues that have been looked at, and how many these are. */
  counts: Counts;
  counted: number;
}

export interface Attention {
  kind: 'store' | 'no-worker' | 'waiting' | 'dead' | 'paused' | 'breaker' | 'dropped' | 'flow';
  /** Urgent ones are problems, the others are worth knowing. */
  urgent: boolean;
  queue?: string;
  /** A flow that failed or whose runner is gone, with the file it came from, if any. */
  flow?: { id: string; name: string; file: string };
  text: string;
}

export interface QueueRow {
  name: string;
  counts: Counts;
  /** How long the next job to run has been waiting; absent if none is. */
  oldest?: number;
  /** Jobs per second over the last minute: added, ended well, and attempts that failed. */
  rateIn: number;
  rateOut: number;
  rateFailed: number;
  workers: number;
  paused: boolean;
  /** While the breaker of the queue is open: when it lets the next job through. */
  brokenUntil?: number;
  limits: QueueLimits;
  /** Jobs done in each of the last sixty minutes, oldest first; absent where no history is kept. */
  doneByMinute?: number[];
}

export interface QueueView {
  now: number;
  /** The queue exists in the store. */
  known: boolean;
  queue: QueueRow;
  attention: Attention[];
  workers: WorkerRow[];
  schedules: ScheduleRow[];
}

/** Filters of jobs, as in the URL of the page. */
export interface JobFilter {
  state: State;
  /** Prefix of the id. */
  id?: string;
  /** Contained in the payload, the error, or a header. */
  text?: string;
  group?: string;
  /** Added at or after, and before: ISO times. */
  after?: string;
  before?: string;
}

export interface JobsParameters extends JobFilter {
  queue: string;
  /** Returned with the previous page. */
  cursor?: string;
}

export interface JobsView {
  now: number;
  jobs: JobRow[];
  /** Present if there may be more: with a filter a page may be short, or empty, and still have a cursor. */
  cursor?: string;
}

export interface JobRow {
  queue: string;
  id: string;
  state: State;
  attempt: number;
  /** Absent if there is no limit. */
  maxAttempts?: number;
  crashes: number;
  priority: number;
  group?: string;
  createdAt: number;
  runAt?: number;
  startedAt?: number;
  finishedAt?: number;
  worker?: string;
  /** The beginning of the payload, in one line. */
  payload: string;
  error?: string;
  progress?: unknown;
}

/** Text that people can read, or a hint that there are bytes. */
export interface Content {
  /** `json`: the text is pretty-printed JSON. `bytes`: the text is a hexadecimal dump of the beginning. */
  kind: 'json' | 'text' | 'bytes';
  text: string;
  /** Size of what is stored, in bytes. */
  size: number;
  /** The text is only the beginning. */
  cut: boolean;
}

export interface JobReference {
  queue: string;
  id: string;
  /** Absent if its record is no longer kept. */
  state?: State;
}

export interface JobView extends Omit<JobRow, 'payload'> {
  now: number;
  payload: Content;
  result?: Content;
  headers: Record<string, string>;
  /** Why it is not running now, or what it is doing, in words; several reasons may hold at once. */
  reasons: string[];
  /** Everything that is known to have happened to it, oldest first. */
  story: StoryEvent[];
  log: string[];
  token?: string;
  /** When the lease of an active job ends unless it is renewed, and when its reservation ends. */
  leaseUntil?: number;
  reservedUntil?: number;
  /** When it is no longer retried. */
  retryUntil?: number;
  /** What it waits or waited for; at most a hundred. */
  needs: (JobReference & { on: 'success' | 'finished' })[];
  needsTotal: number;
  /** What waits for it; at most a hundred. */
  dependents: JobReference[];
  dependentsTotal: number;
  /** Its children, theirs below each, and so on; at most two hundred. */
  tree: (JobReference & { on: 'success' | 'finished'; depth: number })[];
  treeCut: boolean;
  /** The job that it is a child of, and the batch of which it is a member. */
  parent?: JobReference;
  memberOf?: JobReference;
  /** Of the job of a batch: what has become of its members, and some that have not ended. */
  batch?: BatchCounts & { members: JobReference[] };
  unique?: { key: string; scope: string };
  /** A command line that adds the same job again. */
  command: string;
}

/** A point or a span on the time line of a job. */
export interface StoryEvent {
  kind: 'added' | 'waited' | 'attempt' | 'running' | 'log' | 'progress' | 'action' | 'ended' | 'next';
  /** What happened, in a few words. */
  text: string;
  at: number;
  /** The end of a span. */
  until?: number;
  /** For attempts that ended. */
  attempt?: Attempt;
  /** For log lines and values of progress that are many: the last of them. */
  lines?: TimedLine[];
  tone?: 'good' | 'bad' | 'warn';
}

/** Jobs with an id, in whatever queue. */
export interface FoundView {
  now: number;
  jobs: JobReference[];
  /** Queues in the store, and how many of them have been looked through so far. */
  queues: number;
  looked: number;
  /** The queue to go on after, if there are more. */
  after?: string;
}

/** Dead jobs whose errors are alike. */
export interface DeadGroup {
  /** Identifies the group in actions. */
  key: string;
  /** The error with numbers, ids and quoted parts replaced by `…`. */
  pattern: string;
  /** The whole error of the newest of them. */
  error: string;
  count: number;
  queues: { name: string; count: number }[];
  firstAt: number;
  lastAt: number;
  newest: JobReference;
}

export interface DeadView {
  now: number;
  groups: DeadGroup[];
  /** Dead jobs in all, and how many of them were looked at for the groups. */
  total: number;
  looked: number;
  queues: { name: string; dead: number; dropped: number }[];
}

export interface WorkerRow {
  queue: string;
  id: string;
  host?: string;
  pid?: number;
  concurrency?: number;
  since?: number;
  /** When its session ends unless a heartbeat renews it. */
  deadline: number;
  holds: number;
  /** The jobs it holds; at most twenty. */
  jobs: { id: string; startedAt?: number; attempt: number }[];
}

export interface WorkersView {
  now: number;
  workers: WorkerRow[];
  /** There are more than are shown. */
  more: boolean;
}

export interface ScheduleRow {
  name: string;
  queue: string;
  /** A cron expression with its time zone, or an interval. */
  cron?: string;
  timezone?: string;
  every?: number;
  catchUp: string;
  last?: number;
  /** The next ten firings. */
  next: number[];
  payload: string;
}

export interface SchedulesView {
  now: number;
  schedules: ScheduleRow[];
}

export type HistoryRange = 'hour' | 'day' | 'month';

export interface HistoryView {
  now: number;
  range: HistoryRange;
  /** The store keeps no history: behind a job server, for example. */
  kept: boolean;
  /** Milliseconds between two points. */
  step: number;
  points: HistoryPoint[];
}

export interface HistoryPoint {
  /** The beginning of the interval. */
  at: number;
  added: number;
  done: number;
  failed: number;
  dead: number;
  /** Waiting and active jobs at the end of the interval; absent if not known. */
  depth?: number;
  /** Milliseconds, as p50, p95 and p99; absent if nothing was claimed or ran. */
  wait?: Percentiles;
  run?: Percentiles;
}

export type Percentiles = readonly [p50: number, p95: number, p99: number];

export type FlowState = 'running' | 'done' | 'failed' | 'interrupted' | 'cancelled';
export type NodeState = 'blocked' | 'ready' | 'running' | 'done' | 'failed' | 'skipped' | 'cancelled';

export interface FlowRow {
  id: string;
  name: string;
  file: string;
  state: FlowState;
  size: number;
  createdAt: number;
  finishedAt?: number;
  host: string;
  pid: number;
  counts: Partial<Record<NodeState, number>>;
}

export interface FlowsView {
  now: number;
  /** Newest first, at most two hundred. */
  flows: FlowRow[];
  more: boolean;
}

export interface FlowView {
  now: number;
  flow: FlowRow;
  /** Nodes by index: edges refer to these. Beyond a limit, nodes are collapsed into groups that have a `size`. */
  nodes: FlowNode[];
  /** Pairs of indexes: from, to, from, to … */
  edges: number[];
  /** Nodes of the longest chain by time, in order. */
  criticalPath: number[];
  /** How many edges are left out because there are too many for one answer. */
  edgesLeftOut?: number;
  /** Why there is no graph: its functions cannot be loaded here, say. */
  problem?: string;
}

export interface FlowNode {
  id: string;
  state: NodeState;
  /** Layer from the left: all its upstream nodes are in lower layers. */
  layer: number;
  start?: number;
  seconds?: number;
  attempts?: number;
  exit?: number;
  error?: string;
  output?: string;
  /** What it runs, in one line. */
  work?: string;
  /** For a node with a map: how many of its items run now or have ended. */
  items?: Partial<Record<NodeState, number>>;
  /** For a group of nodes: how many, and how many in each state. */
  size?: number;
  counts?: Partial<Record<NodeState, number>>;
}

export interface RingRow {
  name: string;
  items: number;
  locked: number;
  /** How many items, from the right end, were looked at for `locked`; absent if all were. */
  looked?: number;
}

export interface RingsView {
  now: number;
  rings: RingRow[];
  more: boolean;
}

export interface RingItemRow {
  item: string;
  /** Who works on it; absent if nobody does. Holders that say nothing of themselves have only a token. */
  holder?: { token: string; host?: string; pid?: number; since?: number; until: number; resting?: boolean };
}

export interface RingView {
  now: number;
  ring: RingRow;
  /** Items that are locked, the one taken last first; at most two hundred. Absent on pages after the first. */
  held?: RingItemRow[];
  /** A page of items, from the left: the first one is taken next. */
  items: RingItemRow[];
  /** The position from which the next page continues. */
  after?: string;
}

/** What can be done: `POST api/act` with one of these as JSON; the answer is an `ActionResult`. */
export type Action =
  | { action: 'retry' | 'rerun' | 'run-now' | 'cancel' | 'remove'; queue: string; ids: string[] }
  | { action: 'move'; queue: string; ids: string[]; to: string }
  | { action: 'cancel-tree' | 'remove-tree' | 'close-batch' | 'cancel-members'; queue: string; id: string }
  | { action: 'pause' | 'resume' | 'obliterate'; queue: string }
  | { action: 'limits'; queue: string; limits: QueueLimits }
  | { action: 'run-schedule' | 'remove-schedule'; name: string }
  | { action: 'cancel-flow'; id: string };

export interface ActionResult {
  /** How many jobs, queues or schedules it changed. */
  changed: number;
  /** The job that was added. */
  job?: JobReference;
}

/**
 * Something done to every job that matches: `POST api/bulk`, answered with a line of JSON (`BulkProgress`) now and then and at the
 * end; closing the connection stops it. `count` changes nothing: it says how many there are.
 */
export type BulkAction =
  | { action: 'count' | 'retry' | 'cancel' | 'remove'; queue: string; filter: JobFilter }
  | { action: 'move'; queue: string; filter: JobFilter; to: string }
  | { action: 'count' | 'retry' | 'remove'; group: string; queue?: string };

export interface BulkProgress {
  seen: number;
  /** Matching jobs so far, all of them changed unless the action is `count`. */
  changed: number;
  done: boolean;
  error?: string;
}

/** Messages of `api/live`: `content` with the view when it changed, `problem` while it cannot be read. */
export interface LiveProblem {
  text: string;
  since: number;
}

/** The body of an answer that is no success. */
export interface ApiError {
  error: string;
  code: string;
  /** With status 401: whether there is a log-in. */
  logIn?: boolean;
}
