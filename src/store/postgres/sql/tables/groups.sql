-- A lower bound of the turns of groups, for the reason of the others: see the table. An update that changes only numbers of a group touches no index.
alter table crore.counters add column turns_from bigint not null default 0;
drop index crore.group_idle;
create index group_idle on crore.groups (queue, opened) where shelf = 0;
-- Without rules for groups, nobody counts what runs.
update crore.groups g set holds = 0 where not exists (select 1 from crore.queues q where q.n = g.queue and q.limits ? 'group');
