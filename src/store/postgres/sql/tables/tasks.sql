-- A fresh task, which nobody has claimed yet, has a number from `task_back` of the counters on, and no place. A claim writes one row for all fresh tasks that it takes: those of these
-- numbers that have neither a worker nor a place are leased to the worker, and `left_over` is how many. A task that has returned has a place below 0, and a claim of such a task writes
-- worker and token into its row. Older tasks that waited have a place above 0, which says nothing any more.
alter table crore.tasks drop constraint tasks_pkey, alter column seq drop not null, add primary key (queue, n) with (fillfactor = 100);
drop index crore.task_waiting;
create index task_returned on crore.tasks (queue, seq) where worker is null and seq < 0;
create table crore.task_leases (
  queue int not null,
  first bigint not null,
  last bigint not null,
  left_over int not null check (left_over > 0),
  worker text collate "C" not null,
  token text collate "C" not null,
  primary key (queue, first)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
update crore.counters c set task_back = coalesce((select min(t.n) from crore.tasks t where t.queue = c.queue and t.worker is null and t.seq >= 0),
  (select max(t.n) + 1 from crore.tasks t where t.queue = c.queue), 0);
