-- Rings. `name` is that of the list, `lock_start` what the names of its locks begin with, as its last user called them. No item has a position below
-- `low`: a search does not begin with items that have moved to the right end and cannot be vacuumed yet.
create table crore.rings (
  name text collate "C" primary key,
  lock_start text not null default '',
  low bigint not null default 0
) with (fillfactor = 50);

create sequence crore.ring_positions;

-- The leftmost item has the lowest position.
create table crore.ring_items (
  ring text collate "C" not null,
  position bigint not null,
  item bytea not null,
  primary key (ring, position)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- `key` is the SHA-256 of the name of the lock, because an item may be longer than what an index can hold. A lock that was released has an `until` of 0. The
-- holder is for people who look on.
create table crore.ring_locks (
  key bytea primary key,
  token bytea not null,
  until bigint not null,
  host text,
  pid int,
  since bigint,
  resting boolean not null default false
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
