-- Adding jobs in transactions of applications. The settings that our functions make must not outlive the call: a function that has a SET clause for
-- them restores what the application has set.

-- Tells databases and schemas apart, also copies of them. What makes a store moves with none of its backups.
create function crore.identity() returns text language sql stable as $$
  select concat_ws('.', (select system_identifier from pg_control_system()), (select oid from pg_database where datname = current_database()),
    'crore.crore_format'::regclass::oid)
$$;

-- Under other levels, what was committed since the transaction began would be overlooked.
create function crore.check_isolation() returns void language plpgsql as $$
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'jobs cannot be added in a transaction with isolation level %: it has to be read committed', current_setting('transaction_isolation')
      using errcode = 'CR005';
  end if;
end $$;

-- Creates and locks these queues, by ascending number. A queue may be removed while we wait for its lock.
create function crore.enter_many(p_names text[]) returns int[] language plpgsql as $$
declare
  v_all int[];
  v_queue int;
begin
  perform crore.set_up();
  loop
    insert into crore.queues (name) select g.name from unnest(p_names) g(name)
      where not exists (select 1 from crore.queues q where q.name = g.name) order by 1 on conflict (name) do nothing;
    select array_agg(n order by n) into v_all from crore.queues where name = any(p_names);
    foreach v_queue in array v_all loop
      perform crore.lock_queue(v_queue);
    end loop;
    if (select array_agg(n order by n) from crore.queues where name = any(p_names)) = v_all and cardinality(v_all) = cardinality(p_names) then
      return v_all;
    end if;
  end loop;
end $$;

-- When the transaction commits, the first of its rows takes all, so that queues are locked in order, and no longer than the commit takes.
create function crore.take_incoming() returns trigger language plpgsql
set lock_timeout = '20s' set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
  v_names text[] := array(select distinct queue from crore.incoming where xact = pg_current_xact_id());
  v_locked int[];
  r record;
begin
  if cardinality(v_names) = 0 then return null; end if;
  perform crore.check_isolation();
  v_locked := crore.enter_many(v_names);
  for r in select i.jobs, i.now, q.n as queue from crore.incoming i join crore.queues q on q.name = i.queue
      where i.xact = pg_current_xact_id() order by i.n loop
    perform crore.add_jobs(v_locked, r.queue, r.jobs, true, null, null, crore.time(r.now));
  end loop;
  delete from crore.incoming where xact = pg_current_xact_id();
  return null;
end $$;

create constraint trigger take_incoming after insert on crore.incoming deferrable initially deferred
  for each row execute function crore.take_incoming();

-- Delays count from the call, not from the commit.
create function crore.at_fixed_times(p_jobs jsonb, p_now bigint) returns jsonb language sql as $$
  select jsonb_agg(case when j.value ? 'delay' then (j.value - 'delay') || jsonb_build_object('at', p_now + (j.value->>'delay')::bigint) else j.value end
    order by j.ordinality) from jsonb_array_elements(p_jobs) with ordinality j
$$;

-- Adds jobs in the current transaction; returns the outcomes that are not `created`. Jobs whose outcome is known now wait in `incoming`: their queue is not
-- locked before the commit. The others are added at once, and their queue stays locked until the end of the transaction.
create function crore.add_here(
  p_now bigint, p_cross boolean, p_name text, p_jobs jsonb, p_plain boolean, p_others text[], p_most bigint, p_bytes bigint
) returns table (place int, outcome text, existing text) language plpgsql as $$
begin
  perform crore.check_isolation();
  if p_plain and p_most is null and p_bytes is null and not exists (select 1 from jsonb_array_elements(p_jobs) j where not j ? 'fresh') then
    insert into crore.incoming (xact, queue, jobs, now)
      values (pg_current_xact_id(), p_name, crore.at_fixed_times(p_jobs, crore.time(p_now)), p_now);
    return;
  end if;
  return query select * from crore.add_many(p_now, p_cross, p_name, p_jobs, p_plain, p_others, p_most, p_bytes);
end $$;

-- addIn. p_call: store (identity), format, now, cross, queue, jobs, plain, others, most, bytes: see add_many. Returns [place, outcome, id] for each job
-- that was not created.
create function crore.add_in(p_call jsonb) returns jsonb language plpgsql
set lock_timeout = '20s' set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set jit = off
set plan_cache_mode = force_generic_plan as $$
begin
  if crore.identity() <> p_call->>'store' then
    raise exception 'the connection is to another server or database, with a store of its own' using errcode = 'CR006';
  end if;
  if (select max(version) from crore.crore_format) <> (p_call->>'format')::int then
    raise exception 'the store has another format now: %', (select max(version) from crore.crore_format) using errcode = 'CR007';
  end if;
  return (select coalesce(jsonb_agg(jsonb_build_array(place, outcome, existing)), '[]') from crore.add_here((p_call->>'now')::bigint,
    (p_call->>'cross')::boolean, p_call->>'queue', p_call->'jobs', (p_call->>'plain')::boolean,
    array(select jsonb_array_elements_text(p_call->'others')), (p_call->>'most')::bigint, (p_call->>'bytes')::bigint));
end $$;
