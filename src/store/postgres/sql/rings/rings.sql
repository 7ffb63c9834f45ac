-- Rings. Every call that changes the items of a ring holds the lock of its row until it has committed, so that positions are given in the order of commits.
-- Locks of items are rows of their own: refreshing and releasing them waits for nobody. Times are those of the server.

-- Locks a ring; null if it has no items.
create function crore.enter_ring(p_ring text) returns crore.rings language sql as $$
  select * from crore.rings where name = p_ring for update
$$;

-- Appends items at the right end; returns how many there are then.
create function crore.add_ring_items(p_ring text, p_lock_start text, p_items bytea[]) returns bigint language plpgsql as $$
begin
  perform crore.set_up();
  loop
    exit when (crore.enter_ring(p_ring)).name is not null or cardinality(p_items) = 0;
    insert into crore.rings (name, lock_start) values (p_ring, p_lock_start) on conflict do nothing;
  end loop;
  insert into crore.ring_items (ring, position, item)
    select p_ring, nextval('crore.ring_positions'), u.item from (select item from unnest(p_items) with ordinality as u (item, n) order by n) u;
  return crore.ring_length(p_ring);
end $$;

create function crore.ring_length(p_ring text) returns bigint language sql stable as $$
  select count(*) from crore.ring_items where ring = p_ring and position >= (select low from crore.rings where name = p_ring)
$$;

-- Removes every copy of an item, and locks that nobody has held for a minute; returns how many copies there were.
create function crore.remove_ring_item(p_ring text, p_item bytea) returns bigint language plpgsql as $$
declare
  v_removed bigint;
begin
  if (crore.enter_ring(p_ring)).name is null then return 0; end if;
  delete from crore.ring_items where ring = p_ring and item = p_item;
  get diagnostics v_removed = row_count;
  delete from crore.ring_locks where until < crore.time(null) - 60000;
  delete from crore.rings r where r.name = p_ring and not exists (select 1 from crore.ring_items i where i.ring = p_ring);
  return v_removed;
end $$;

-- Examines up to `p_count` items from index `p_from`, locks the first free one and moves everything up to it to the right end. `next` is the index after the
-- last item examined.
create function crore.take_ring_item(p_ring text, p_lock_start text, p_token bytea, p_expiry bigint, p_from bigint, p_count bigint, p_host text, p_pid int)
returns table (length bigint, next bigint, item bytea) language plpgsql as $$
declare
  v_ring crore.rings;
  v_start bytea := convert_to(p_lock_start, 'UTF8');
  v_now bigint;
  v_found record;
  v_moved bigint;
  v_length bigint;
begin
  perform crore.set_up();
  v_ring := crore.enter_ring(p_ring);
  if v_ring.name is null then return query select 0::bigint, 0::bigint, null::bytea; return; end if;
  v_length := crore.ring_length(p_ring);
  loop
    v_now := crore.time(null);
    select i.position, i.item, i.key into v_found from (
      select r.position, r.item, sha256(v_start || r.item) as key from crore.ring_items r
        where r.ring = p_ring and r.position >= v_ring.low order by r.position offset p_from limit p_count
    ) i where not exists (select 1 from crore.ring_locks l where l.key = i.key and l.until > v_now) order by i.position limit 1;
    if not found then return query select v_length, least(v_length, p_from + p_count), null::bytea; return; end if;
    -- Rings with other lists may share the names of their locks.
    exit when crore.lock_ring_item(v_found.key, p_token, v_now, p_expiry, p_host, p_pid);
  end loop;
  with moved as (
    select r.position from crore.ring_items r where r.ring = p_ring and r.position between v_ring.low and v_found.position order by r.position
  ), placed as (select m.position, nextval('crore.ring_positions') as place from moved m)
  update crore.ring_items r set position = p.place from placed p where r.ring = p_ring and r.position = p.position;
  get diagnostics v_moved = row_count;
  -- Everything else is to the right of what was found.
  if v_ring.lock_start <> p_lock_start or v_found.position - v_ring.low >= 16 then
    update crore.rings set lock_start = p_lock_start, low = v_found.position + 1 where name = p_ring;
  end if;
  return query select v_length, v_moved, v_found.item;
end $$;

-- Takes a lock that is free or expired, or is ours already because this is a repeated call.
create function crore.lock_ring_item(p_key bytea, p_token bytea, p_now bigint, p_expiry bigint, p_host text, p_pid int) returns boolean
language plpgsql as $$
begin
  insert into crore.ring_locks as l (key, token, until, host, pid, since) values (p_key, p_token, p_now + p_expiry, p_host, p_pid, p_now)
    on conflict (key) do update set token = excluded.token, until = excluded.until, host = excluded.host, pid = excluded.pid,
      since = case when l.token = excluded.token then l.since else excluded.since end, resting = false
      where l.until <= p_now or l.token = excluded.token;
  return found;
end $$;

create function crore.retake_ring_item(p_key bytea, p_token bytea, p_expiry bigint, p_host text, p_pid int) returns boolean language sql as $$
  select crore.lock_ring_item(p_key, p_token, crore.time(null), p_expiry, p_host, p_pid)
$$;

-- Extends the locks that are still ours. For each: `kept`, `gone` or `foreign`.
create function crore.refresh_ring_locks(p_keys bytea[], p_tokens bytea[], p_expiry bigint) returns text[] language plpgsql as $$
declare
  v_now bigint := crore.time(null);
  v_states text[] := '{}';
begin
  for i in 1 .. cardinality(p_keys) loop
    update crore.ring_locks set until = v_now + p_expiry where key = p_keys[i] and token = p_tokens[i] and until > v_now;
    v_states := v_states || case when found then 'kept'
      when exists (select 1 from crore.ring_locks where key = p_keys[i] and until > v_now) then 'foreign' else 'gone' end;
  end loop;
  return v_states;
end $$;

-- Releases a lock, or keeps it for `p_rest` more milliseconds; false if it was no longer ours. The row stays: the next lock of the item needs no new entry in
-- the index.
create function crore.release_ring_lock(p_key bytea, p_token bytea, p_rest bigint) returns boolean language plpgsql as $$
begin
  update crore.ring_locks set until = case when p_rest = 0 then 0 else crore.time(null) + p_rest end, resting = p_rest > 0
    where key = p_key and token = p_token and until > 0;
  return found;
end $$;
