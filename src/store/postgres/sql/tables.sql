-- The tables, format 1. `crore.` stands for the schema of the store. `state` is the index in STATES (0 blocked, 1 scheduled, 2 ready, 3 active,
-- 4 done, 5 dead, 6 cancelled). Times are milliseconds.

create table crore.crore_format (version int not null);

create sequence crore.job_numbers;
create sequence crore.task_numbers;
-- Places in the waiting lists: at the back they count up, at the front down. The number of a fresh job is its place.
create sequence crore.backs;
create sequence crore.fronts;
create sequence crore.turns;

-- What is known about a queue and seldom changes.
create table crore.queues (
  n int generated always as identity primary key,
  name text collate "C" not null unique,
  paused boolean not null default false,
  limits jsonb,
  breaker jsonb,
  watched bigint not null default 0
);

-- What changes with every call. A call inserts a new version instead of updating a row that everybody reads: the newest version of a queue is
-- found at the end of the index, however many old ones cannot be vacuumed yet. `cleaned` is the version before which there are no others. Of the breaker: how many attempts have failed in a row, until when it is open, and
-- the token of the entry that it let through.
-- Lower bounds, so that no scan begins with entries that are dead but cannot be vacuumed yet: `head` of the numbers of fresh jobs (see lib/ready.sql),
-- of which there are `fresh`; `lanes` of the places of other ready jobs; `due` of the times of scheduled jobs; `done_from` of the end of the retention of done jobs;
-- `task_front` and `task_back` of the places of waiting tasks. `awaited` is the number of rows in that table.
create table crore.counters (
  queue int not null,
  version bigint not null,
  age int not null default 0,
  cleaned bigint not null default 0,
  swept bigint,
  claims bigint not null default 0,
  bytes bigint not null default 0 check (bytes >= 0),
  tasks bigint not null default 0 check (tasks >= 0),
  grouped bigint not null default 0 check (grouped >= 0),
  opened bigint not null default 0,
  started bigint not null default 0,
  dropped bigint not null default 0,
  hungry boolean not null default false,
  failed bigint not null default 0,
  broken bigint not null default 0,
  trial text not null default '',
  fresh bigint not null default 0 check (fresh >= 0),
  head bigint not null default 0,
  lanes int[],
  fronts bigint[],
  backs bigint[],
  due bigint not null default 0,
  done_from bigint not null default 0,
  task_front bigint not null default 0,
  task_back bigint not null default 0,
  awaited bigint not null default 0,
  blocked bigint not null default 0 check (blocked >= 0),
  scheduled bigint not null default 0 check (scheduled >= 0),
  ready bigint not null default 0 check (ready >= 0),
  active bigint not null default 0 check (active >= 0),
  done bigint not null default 0 check (done >= 0),
  dead bigint not null default 0 check (dead >= 0),
  cancelled bigint not null default 0 check (cancelled >= 0),
  primary key (queue, version)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_analyze_threshold = 1000000);

-- What is written once: a payload changes only when somebody replaces it. A payload is text (JSON) or bytes. `traits` are the options that
-- functions need, if they differ from the defaults: see lib/traits.sql. A record is found by its queue and number, or its queue and id.
create table crore.records (
  n bigint not null,
  created bigint not null,
  queue int not null,
  size int not null,
  id text collate "C" not null,
  spec text,
  traits jsonb,
  body text,
  bytes bytea,
  check ((body is null) <> (bytes is null)),
  primary key (queue, n) with (fillfactor = 100),
  unique (queue, id) with (fillfactor = 100)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);

-- What changes about a job: narrow rows. A fresh job has none. `linked`: other jobs depend on it or it on others, or somebody may need its record.
create table crore.jobs (
  n bigint primary key,
  queue int not null,
  state smallint not null check (state between 0 and 6),
  priority int not null default 0,
  seq bigint not null default 0,
  attempt int not null default 0 check (attempt >= 0),
  crashes int not null default 0 check (crashes >= 0),
  size int not null,
  at bigint,
  until bigint,
  reservation bigint not null default 0,
  linked boolean not null default false,
  grp text collate "C",
  worker text collate "C",
  token text collate "C",
  ran text collate "C",
  outcome text,
  outcome_bytes bytea,
  check ((state = 3) = (token is not null)),
  check ((state = 3) = (worker is not null)),
  check (state <> 1 or at is not null),
  check (state < 4 or until is not null)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
create index job_ready on crore.jobs (queue, priority desc, seq) where state = 2 and grp is null;
create index job_grouped on crore.jobs (queue, grp, priority desc, seq) where state = 2 and grp is not null;
create index job_scheduled on crore.jobs (queue, at, n) where state = 1;
create index job_active on crore.jobs (queue, worker, n) where state = 3;
create index job_reserved on crore.jobs (queue, until) where state = 3 and until is not null;
create index job_blocked on crore.jobs (queue, n) where state = 0;
create index job_ended on crore.jobs (queue, state, until, n) where state > 3;

-- A claim that took fresh jobs only. Those of these numbers that have a record and no row in jobs are leased to the worker; `left_over` is how many. `split`: some
-- have got a row. Leases do not overlap, so the one of a job is that with the greatest `first` up to its number.
create table crore.leases (
  queue int not null,
  first bigint not null,
  last bigint not null,
  left_over int not null check (left_over > 0),
  split boolean not null default false,
  at bigint not null,
  worker text collate "C" not null,
  token text collate "C" not null,
  primary key (queue, first)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

create table crore.tasks (
  n bigint primary key default nextval('crore.task_numbers'),
  queue int not null,
  seq bigint not null,
  body bytea not null,
  worker text collate "C",
  token text collate "C",
  check ((worker is null) = (token is null))
);
create index task_waiting on crore.tasks (queue, seq) where worker is null;
create index task_leased on crore.tasks (queue, worker, n) where worker is not null;

-- The unique locks of raw tasks, by the hash of the task: each refers to the leased row that holds it, to none while the task waits.
create table crore.task_locks (
  queue int not null,
  hash bytea not null,
  task bigint,
  primary key (queue, hash)
);

create table crore.sessions (
  queue int not null,
  worker text collate "C" not null,
  deadline bigint not null,
  info text not null,
  raw boolean not null default false,
  primary key (queue, worker)
) with (fillfactor = 50);

create table crore.keys (
  queue int not null,
  key text collate "C" not null,
  id text collate "C" not null,
  until bigint not null,
  primary key (queue, key)
);
create index key_ends on crore.keys (queue, until) where until > 0;

-- Ids that stay taken after the end of their job.
create table crore.ended_ids (
  queue int not null,
  id text collate "C" not null,
  until bigint not null,
  primary key (queue, id)
);
create index ended_id_ends on crore.ended_ids (queue, until);

-- `down` waits for `up`. `member`: `up` is a member of the batch of `down`. `far`: they are in different queues.
create table crore.edges (
  up bigint not null,
  down bigint not null,
  policy text not null check (policy in ('success', 'finished')),
  member boolean not null default false,
  far boolean not null,
  primary key (up, down)
);
create index edge_downs on crore.edges (down);
create index edge_far on crore.edges (up) where far;

-- Records that somebody needs: `down` is a dependent job, or 0 (with a time) for those who waited for the end.
create table crore.needed (
  up bigint not null,
  down bigint not null,
  up_queue int not null,
  until bigint not null default 0,
  far boolean not null,
  primary key (up, down)
);
create index needed_downs on crore.needed (down);
create index needed_waited on crore.needed (up_queue, until) where down = 0;
create index needed_far on crore.needed (up) where far;

create table crore.awaited (
  queue int not null,
  id text collate "C" not null,
  primary key (queue, id)
);

-- The log of a job, its progress, the history of its attempts, its children: see the forms in src/job/.
create table crore.notes (
  n bigint primary key,
  progress text,
  steps text,
  log text,
  attempts text,
  children text
);

create table crore.batches (
  n bigint primary key,
  policy text not null check (policy in ('finished', 'failure')),
  open boolean not null default true,
  total int not null default 0,
  done int not null default 0,
  dead int not null default 0,
  cancelled int not null default 0
);

-- shelf: 0 has no jobs waiting, 1 takes turns, 2 is at its limit, 3 waits until its rate lets it go on. held: in an ordered group, the job that has
-- started, has not ended, and waits to go on: no other job may start.
create table crore.groups (
  queue int not null,
  name text collate "C" not null,
  waiting int not null default 0 check (waiting >= 0),
  holds int not null default 0 check (holds >= 0),
  shelf smallint not null default 0 check (shelf between 0 and 3),
  turn bigint not null default 0,
  opened bigint not null default 0,
  started bigint not null default 0,
  rests bigint not null default 0,
  held bigint,
  primary key (queue, name)
) with (fillfactor = 50);
create index group_turns on crore.groups (queue, turn, name) where shelf = 1;
create index group_rests on crore.groups (queue, rests, name) where shelf = 3;
create index group_idle on crore.groups (queue, opened) where waiting = 0 and holds = 0;

create table crore.events (
  n bigint generated always as identity primary key,
  queue int not null,
  type text not null,
  id text collate "C" not null,
  at bigint not null,
  info text not null
);
create index event_queues on crore.events (queue, n);

-- Task events that processes read after a notification, and who wants them.
create table crore.news (
  n bigint generated always as identity primary key,
  queue int not null,
  at bigint not null,
  type text not null check (type in ('work', 'done', 'cancel', 'delete')),
  count bigint,
  worker text,
  token text,
  task bytea,
  result text
);
create index news_queues on crore.news (queue, n);
create table crore.news_readers (
  queue text collate "C" not null,
  topic text not null check (topic in ('news', 'ends')),
  until timestamptz not null,
  primary key (queue, topic)
);

create table crore.schedules (
  name text collate "C" primary key,
  queue int not null,
  definition text not null,
  since bigint not null,
  next bigint,
  last bigint
);
create index schedule_queues on crore.schedules (queue);

-- The position of each source.
create table crore.source_positions (
  queue int not null,
  source text collate "C" not null,
  position text not null,
  primary key (queue, source)
);

create table crore.history (
  queue int not null,
  range text not null check (range in ('hour', 'day', 'month')),
  interval bigint not null,
  activity text not null,
  primary key (queue, range, interval)
);
