-- The tables of an outbox, format 1. `crore.` stands for its schema. Times are milliseconds.

create table crore.outbox_format (version int not null);

-- Jobs that wait to be sent. Numbers are drawn when rows are written, and concurrent transactions may commit in another order: no row is ever
-- skipped or deleted because its number is smaller than that of another one.
create table crore.outbox_rows (
  n bigint generated always as identity primary key,
  queue text collate "C" not null,
  id text not null,
  priority int not null,
  created bigint not null,
  at bigint,
  spec text not null,
  size int not null,
  body text,
  bytes bytea,
  check ((body is null) <> (bytes is null))
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index outbox_order on crore.outbox_rows (queue, n);

-- Per queue: the name under which the store knows us, the position of the last batch that is known to have arrived, and the batch that is being sent:
-- its position, and its rows. What belongs to a batch does not change until it has arrived.
create table crore.queues (
  queue text collate "C" primary key,
  source text not null default replace(gen_random_uuid()::text, '-', ''),
  position text not null default '',
  batch text,
  batch_rows bigint[]
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
