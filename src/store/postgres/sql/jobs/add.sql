-- Adding jobs. A job is an object: id, body (text) or bytes (base64), size, priority, at or delay, spec, traits (see lib/traits.sql), group, reservation,
-- unique {key, ttl, mode}, needs, parent, batch, policy (of a batch), fresh, replace.

-- Whether there is room for this many more entries of this size. `p_most` and `p_bytes` are the limits, or null.
create function crore.has_room(p_queue int, p_count bigint, p_size bigint, p_most bigint, p_bytes bigint) returns boolean language plpgsql as $$
declare
  c crore.counters;
begin
  if p_most is null and p_bytes is null then return true; end if;
  c := crore.counts(p_queue);
  return (p_most is null or p_count <= p_most - (c.blocked + c.scheduled + c.ready)) and (p_bytes is null or p_size <= p_bytes - c.bytes);
end $$;

create function crore.insert_job(p_queue int, p_job jsonb, p_state int, p_at bigint, p_now bigint) returns bigint language plpgsql as $$
declare
  v_job bigint := nextval('crore.job_numbers');
begin
  insert into crore.records (n, queue, id, created, spec, traits, body, bytes) values (v_job, p_queue, p_job->>'id', p_now, p_job->>'spec',
    nullif(p_job->'traits', 'null'), p_job->>'body', decode(p_job->>'bytes', 'base64'));
  insert into crore.jobs (n, queue, state, priority, seq, size, at, reservation, grp) values (v_job, p_queue, p_state,
    (p_job->>'priority')::int, case when p_state = 2 then nextval('crore.backs') else 0 end, (p_job->>'size')::int,
    case when p_state <> 2 then p_at end, coalesce((p_job->>'reservation')::bigint, 0), p_job->>'group');
  return v_job;
end $$;

-- The id of the existing job that makes this one a duplicate, if there is one.
create function crore.taken_by(p_queue int, p_job jsonb, p_now bigint) returns text language plpgsql as $$
declare
  r record;
  v_id text := p_job->>'id';
begin
  if not p_job ? 'fresh' then
    select n, state, until into r from crore.records join crore.jobs using (n, queue) where queue = p_queue and id = v_id;
    if found then
      -- A hidden record that is only there for somebody who waited for it gives way.
      if r.state < 4 or r.until <> crore.hidden() or exists (select 1 from crore.needed where up = r.n and down <> 0) then return v_id; end if;
      delete from crore.needed where up = r.n;
      perform crore.drop_hidden(r.n);
    end if;
    if exists (select 1 from crore.ended_ids where queue = p_queue and id = v_id and until > p_now) then return v_id; end if;
  end if;
  if not p_job ? 'unique' then return null; end if;
  return (select id from crore.keys where queue = p_queue and key = p_job->'unique'->>'key' and (until = 0 or until > p_now));
end $$;

create function crore.lock_key(p_queue int, p_unique jsonb, p_id text, p_now bigint) returns void language plpgsql as $$
declare
  v_ttl bigint := (p_unique->>'ttl')::bigint;
begin
  insert into crore.keys (queue, key, id, until) values (p_queue, p_unique->>'key', p_id, case when v_ttl > 0 then p_now + v_ttl else 0 end)
    on conflict (queue, key) do update set id = excluded.id, until = excluded.until;
end $$;

-- A new job has the unique key of a waiting one: changes that one as the mode says. Returns duplicate, replaced or extended.
create function crore.renew(p_queue int, p_job jsonb, p_id text, p_now bigint) returns text language plpgsql as $$
declare
  v_mode text := coalesce(p_job->'unique'->>'mode', 'keep');
  v_due bigint := coalesce((p_job->>'at')::bigint, p_now + nullif((p_job->>'delay')::bigint, 0));
  j record;
begin
  if v_mode = 'keep' or p_id = p_job->>'id' then return 'duplicate'; end if;
  select k.* into j from crore.jobs k join crore.records r using (n) where r.queue = p_queue and r.id = p_id and k.state < 3;
  if not found then return 'duplicate'; end if;
  if v_mode = 'replace' then perform crore.replace_payload(p_queue, j.n, p_job); end if;
  -- A job that is already due is not delayed again, even if no sweep or claim has promoted it yet.
  if v_due is not null and j.attempt = 0 and (j.state = 0 or (j.state = 1 and j.at > p_now)) then
    update crore.jobs set at = v_due where n = j.n;
  end if;
  if (p_job->'unique'->>'ttl')::bigint > 0 then perform crore.lock_key(p_queue, p_job->'unique', p_id, p_now); end if;
  perform crore.event(p_queue, p_now, 'changed', p_id);
  return case v_mode when 'replace' then 'replaced' else 'extended' end;
end $$;

create function crore.replace_payload(p_queue int, p_job bigint, p_new jsonb) returns void language plpgsql as $$
declare
  v_size int := (p_new->>'size')::int;
begin
  perform crore.bump(p_queue, bytes => v_size - (select size from crore.jobs where n = p_job));
  update crore.records set body = p_new->>'body', bytes = decode(p_new->>'bytes', 'base64') where n = p_job;
  update crore.jobs set size = v_size where n = p_job;
end $$;

-- Returns null if the job was created, else its outcome, and the id of the existing job.
create function crore.add_one(
  p_locked int[], p_queue int, p_job jsonb, p_most bigint, p_bytes bigint, p_now bigint, out outcome text, out existing text
) language plpgsql as $$
declare
  v_id text := p_job->>'id';
  v_size int := (p_job->>'size')::int;
  v_at bigint := coalesce((p_job->>'at')::bigint, p_now + coalesce((p_job->>'delay')::bigint, 0));
  v_needs boolean := p_job ? 'needs';
  v_state int := case when v_needs or p_job ? 'policy' then 0 when v_at > p_now then 1 else 2 end;
  v_job bigint;
  w record;
  u record;
begin
  if p_job ? 'replace' then perform crore.remove_ended(p_queue, v_id); end if;
  existing := crore.taken_by(p_queue, p_job, p_now);
  if existing is not null then
    outcome := crore.renew(p_queue, p_job, existing, p_now);
    return;
  end if;
  if not crore.has_room(p_queue, 1, v_size, p_most, p_bytes) then
    outcome := 'full';
    return;
  end if;
  v_job := crore.insert_job(p_queue, p_job, v_state, v_at, p_now);
  perform crore.event(p_queue, p_now, 'added', v_id);
  if p_job ? 'batch' then perform crore.join_batch(p_queue, v_job, p_job->'batch'); end if;
  if v_needs then
    select * into w from crore.connect(p_queue, v_job, p_job->'needs', false);
    if w.failed is not null then
      perform crore.close_job(p_queue, p_now, v_job, 6, 0, 0, w.failed);
      perform crore.event(p_queue, p_now, 'cancelled', v_id, w.failed);
      if p_job ? 'batch' then perform crore.notify_dependents(p_locked, p_now, array[v_job], array[v_id], array[6]); end if;
      return;
    end if;
    if not w.waits and not p_job ? 'policy' then
      v_state := case when v_at > p_now then 1 else 2 end;
      update crore.jobs set state = v_state, at = case when v_state = 1 then v_at end,
        seq = case when v_state = 2 then nextval('crore.backs') else 0 end where n = v_job;
    end if;
  end if;
  if p_job ? 'policy' then insert into crore.batches (n, policy) values (v_job, p_job->>'policy'); end if;
  if v_state = 2 and p_job ? 'group' then perform crore.enter_group(p_queue, p_job->>'group', p_now); end if;
  if p_job ? 'parent' then
    select j.n, j.queue into u from crore.records r join crore.queues q on q.n = r.queue join crore.jobs j on j.n = r.n
      where q.name = p_job->'parent'->>'queue' and r.id = p_job->'parent'->>'id' and j.state < 4;
    if found then perform crore.keep_record(v_job, p_queue, u.n, u.queue); end if;
  end if;
  perform crore.bump(p_queue, blocked => (v_state = 0)::int, scheduled => (v_state = 1)::int, ready => (v_state = 2)::int, bytes => v_size);
  if p_job ? 'unique' then perform crore.lock_key(p_queue, p_job->'unique', v_id, p_now); end if;
end $$;

-- Whether an id of these jobs occurs twice, or is taken. Generated ids are not looked up.
create function crore.any_taken(p_queue int, p_jobs jsonb, p_now bigint) returns boolean language plpgsql as $$
declare
  v_ids text[] := array(select j->>'id' from jsonb_array_elements(p_jobs) j where not j ? 'fresh');
begin
  if cardinality(v_ids) = 0 then return false; end if;
  return (select count(distinct i) < count(*) from unnest(v_ids) i)
    or exists (select 1 from crore.records where queue = p_queue and id = any(v_ids))
    or exists (select 1 from crore.ended_ids where queue = p_queue and id = any(v_ids) and until > p_now);
end $$;

-- New jobs that concern nobody else, all at once.
create function crore.add_fresh(p_queue int, p_jobs jsonb, p_now bigint) returns void language plpgsql as $$
declare
  v_watched boolean := (select watched > p_now from crore.queues where n = p_queue);
  v_first bigint;
  g record;
  s record;
begin
  with given as materialized (
    select nextval('crore.job_numbers') as n, j.*, coalesce(j.at, p_now + coalesce(j.delay, 0)) as due
    from rows from (jsonb_to_recordset(p_jobs) as (id text, body text, bytes text, size int, priority int, at bigint, delay bigint, spec text,
      traits jsonb, "group" text, reservation bigint)) with ordinality as
      j(id, body, bytes, size, priority, at, delay, spec, traits, grp, reservation, place) order by place
  ), kept as (
    insert into crore.records (n, queue, id, created, spec, traits, body, bytes)
    select n, p_queue, id, p_now, spec, traits, body, decode(bytes, 'base64') from given
  ), queued as (
    insert into crore.jobs (n, queue, state, priority, seq, size, at, reservation, grp)
    select n, p_queue, case when due > p_now then 1 else 2 end, priority, case when due > p_now then 0 else nextval('crore.backs') end, size,
      case when due > p_now then due end, coalesce(reservation, 0), grp from given
  )
  select count(*) filter (where due > p_now) as later, count(*) filter (where due <= p_now) as ready, coalesce(sum(size), 0) as bytes into s
  from given;
  perform crore.bump(p_queue, scheduled => s.later, ready => s.ready, bytes => s.bytes);
  if v_watched then
    insert into crore.events (queue, type, id, at, info) select p_queue, 'added', j.value->>'id', p_now, ''
      from jsonb_array_elements(p_jobs) with ordinality j order by j.ordinality;
    perform crore.signal(p_queue, 'e');
  end if;
  for g in select j.value->>'group' as name, count(*) as count, min(j.ordinality) as place
      from jsonb_array_elements(p_jobs) with ordinality j
      where j.value ? 'group' and coalesce((j.value->>'at')::bigint, p_now + coalesce((j.value->>'delay')::bigint, 0)) <= p_now
      group by 1 order by place loop
    perform crore.enter_group(p_queue, g.name, p_now, g.count::int);
  end loop;
end $$;

-- Adds jobs to a locked queue; returns the outcomes that are not `created`, by their places.
create function crore.add_jobs(p_locked int[], p_queue int, p_jobs jsonb, p_plain boolean, p_most bigint, p_bytes bigint, p_now bigint)
returns table (place int, outcome text, existing text) language plpgsql as $$
declare
  i int := 0;
  v_size bigint;
  v_job jsonb;
begin
  if p_plain then
    if p_most is not null or p_bytes is not null then
      select sum((j->>'size')::bigint) into v_size from jsonb_array_elements(p_jobs) j;
    end if;
    if crore.has_room(p_queue, jsonb_array_length(p_jobs), v_size, p_most, p_bytes) and not crore.any_taken(p_queue, p_jobs, p_now) then
      perform crore.add_fresh(p_queue, p_jobs, p_now);
      perform crore.wake(p_queue);
      return;
    end if;
  end if;
  perform crore.check_relations((select name from crore.queues where n = p_queue), p_jobs);
  for v_job in select * from jsonb_array_elements(p_jobs) loop
    select a.outcome, a.existing into add_jobs.outcome, add_jobs.existing
      from crore.add_one(p_locked, p_queue, v_job, p_most, p_bytes, p_now) a;
    place := i;
    i := i + 1;
    if add_jobs.outcome is not null then return next; end if;
  end loop;
  perform crore.wake(p_queue);
end $$;

-- Locks the queue of new jobs and those of the jobs they refer to; returns the locked queues, null if any may be locked.
create function crore.enter_to_add(p_name text, p_others text[], p_cross boolean) returns int[] language plpgsql as $$
begin
  if p_cross then
    perform crore.lock_all_queues();
    perform crore.ensure(p_name);
    perform crore.lock_queue(n) from (select n from crore.queues where name = any(p_others) order by n) o;
    return null;
  end if;
  if cardinality(p_others) > 0 then return crore.enter_all(p_name, p_others); end if;
  return array[crore.ensure(p_name)];
end $$;

-- add. p_plain: none has a unique key, an upstream job, a parent or a batch, or replaces another. p_others: other queues they refer to. p_most, p_bytes: limits
-- of the queue, or null.
create function crore.add_many(
  p_now bigint, p_cross boolean, p_name text, p_jobs jsonb, p_plain boolean, p_others text[], p_most bigint, p_bytes bigint
) returns table (place int, outcome text, existing text) language plpgsql as $$
declare
  v_locked int[] := crore.enter_to_add(p_name, p_others, p_cross);
begin
  return query select * from crore.add_jobs(v_locked, (select n from crore.queues where name = p_name), p_jobs, p_plain, p_most, p_bytes,
    crore.time(p_now));
end $$;

-- Adds jobs if the source is at p_from, and moves it to p_to. A row with the outcome `stale` if it is not.
create function crore.add_from_source(
  p_now bigint, p_cross boolean, p_name text, p_jobs jsonb, p_plain boolean, p_others text[], p_source text, p_from text, p_to text
) returns table (place int, outcome text, existing text) language plpgsql as $$
declare
  v_locked int[] := crore.enter_to_add(p_name, p_others, p_cross);
  v_queue int := (select n from crore.queues where name = p_name);
begin
  if coalesce((select position from crore.source_positions where queue = v_queue and source = p_source), '') <> p_from then
    return query select -1, 'stale'::text, null::text;
    return;
  end if;
  return query select * from crore.add_jobs(v_locked, v_queue, p_jobs, p_plain, null, null, crore.time(p_now));
  insert into crore.source_positions (queue, source, position) values (v_queue, p_source, p_to)
    on conflict (queue, source) do update set position = excluded.position;
end $$;
