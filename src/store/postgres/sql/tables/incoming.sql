-- Jobs of a transaction of an application that enter their queues when it commits. Nobody else ever sees such a row: it is deleted before the
-- transaction ends.
create table crore.incoming (
  n bigint generated always as identity primary key,
  xact xid8 not null,
  queue text collate "C" not null,
  jobs jsonb not null,
  now bigint
);
create index incoming_xacts on crore.incoming (xact);
