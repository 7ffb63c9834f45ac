-- Flows: what must survive the end of a runner. `info`, `counts`, `running` and `body` are the texts that the runner wrote: JSON that nobody but runners and
-- readers of flows reads, kept as it was written.
create table crore.flows (
  n bigint generated always as identity primary key,
  id text collate "C" not null unique,
  state text not null,
  info text not null,
  definition text not null
);

-- The runner of a flow, as long as it renews its hold, and its last report. Apart from `flows`, because it changes every second.
create table crore.flow_holds (
  flow bigint primary key references crore.flows on delete cascade,
  holder text,
  until bigint not null default 0,
  cancel boolean not null default false,
  counts text,
  running text
) with (fillfactor = 50);

-- Completions in order, many in a row. The runner counts the rows, so that one written twice is recognised.
create table crore.flow_ends (
  flow bigint not null references crore.flows on delete cascade,
  n bigint not null,
  body text not null,
  primary key (flow, n)
);

-- Cache records of nodes, by the name of the flow.
create table crore.flow_memories (
  name text collate "C" not null,
  node text collate "C" not null,
  body text not null,
  primary key (name, node)
);
