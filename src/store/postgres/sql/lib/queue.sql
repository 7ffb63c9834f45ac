-- Finding and locking a queue, and the clock. Lock order: first lock 0 (shared by calls that know all their queues in advance, exclusive for those that
-- find more on their way), then queues by ascending number, or in any order under the exclusive lock 0. A call with one queue takes its lock alone.

-- The time in milliseconds: the given one in tests, else that of the server.
create function crore.time(p_now bigint) returns bigint language sql as $$
  select coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint)
$$;

-- Settings for the rest of the transaction. Statements find few rows through indexes, however many there are: a plan that was made while the tables were
-- empty, or analyzed at such a moment, must not read whole tables later. Without sorting, what is asked for in the order of an index is found through that index,
-- and not through another one that seems to cost the same; what has to be sorted all the same seems to be expensive enough to be compiled, which would take longer than to run it.
create function crore.set_up() returns void language plpgsql as $$
begin
  perform set_config('lock_timeout', '20s', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('enable_sort', 'off', true),
    set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true);
end $$;

create function crore.lock_queue(p_queue int) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock(:lock_class, p_queue);
end $$;

-- Locks a queue and returns its number; null if it does not exist. It may be removed while we wait for the lock.
create function crore.enter(p_name text) returns int language plpgsql as $$
declare
  v_queue int;
begin
  loop
    select n into v_queue from (
      select n, set_config('lock_timeout', '20s', true), pg_advisory_xact_lock(:lock_class, n), set_config('enable_seqscan', 'off', true),
        set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
        set_config('enable_sort', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true) from crore.queues where name = p_name offset 0) q;
    if v_queue is null then return null; end if;
    perform 1 from crore.queues where n = v_queue;
    if found then return v_queue; end if;
  end loop;
end $$;

-- The same, and creates a missing queue.
create function crore.ensure(p_name text) returns int language plpgsql as $$
declare
  v_queue int;
begin
  loop
    v_queue := crore.enter(p_name);
    if v_queue is not null then return v_queue; end if;
    insert into crore.queues (name) values (p_name) on conflict (name) do nothing;
  end loop;
end $$;

-- Before `enter` or `ensure`, for a call that may change jobs in queues it does not know yet.
create function crore.lock_all_queues() returns void language plpgsql as $$
begin
  perform crore.set_up();
  perform crore.lock_queue(0);
end $$;

-- Locks these queues besides a new one, all of which are known; returns their numbers.
create function crore.enter_all(p_name text, p_others text[]) returns int[] language plpgsql as $$
declare
  v_all int[];
  v_again int[];
begin
  perform crore.set_up();
  insert into crore.queues (name) select p_name where not exists (select 1 from crore.queues where name = p_name)
    on conflict (name) do nothing;
  perform pg_advisory_xact_lock_shared(:lock_class, 0);
  select array_agg(n order by n) into v_all from crore.queues where name = any(p_others || p_name);
  for i in 1 .. cardinality(v_all) loop
    perform crore.lock_queue(v_all[i]);
  end loop;
  select array_agg(n order by n) into v_again from crore.queues where name = any(p_others || p_name);
  if v_again is distinct from v_all then
    raise exception 'a queue came or went' using errcode = '40001';
  end if;
  return v_all;
end $$;

-- Before a job in another queue is changed. `p_locked` are the queues that are locked, null if the call may lock any.
create function crore.reach(p_locked int[], p_queue int) returns void language plpgsql as $$
begin
  if p_locked is null then
    perform crore.lock_queue(p_queue);
  elsif not p_queue = any(p_locked) then
    raise exception 'the call concerns another queue' using errcode = 'CR001';
  end if;
end $$;

-- Whether any job depends on one in another queue.
create function crore.any_far() returns boolean language sql as $$
  select exists (select 1 from crore.edges where far) or exists (select 1 from crore.needed where far)
$$;

-- Whether the end of these jobs may concern other queues.
create function crore.concerns_others(p_jobs bigint[]) returns boolean language plpgsql as $$
begin
  if exists (select 1 from crore.needed where down = any(p_jobs) and far) then return true; end if;
  if not exists (select 1 from crore.edges where up = any(p_jobs)) then return false; end if;
  return exists (select 1 from crore.edges where far) or exists (select 1 from crore.needed where far);
end $$;
