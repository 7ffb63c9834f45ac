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
  v_job bigint := crore.next_row();
begin
  insert into crore.records (n, queue, id, created, size, spec, traits, body, bytes) values (v_job, p_queue, p_job->>'id', p_now,
    (p_job->>'size')::int, p_job->>'spec', nullif(p_job->'traits', 'null'), p_job->>'body', decode(p_job->>'bytes', 'base64'));
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
    select n, coalesce(state, 2) as state, until into r from crore.found(p_queue, array[v_id]) f(n) left join crore.jobs using (n);
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
  perform crore.make_rows(p_queue, array[p_id]);
  select k.* into j from crore.record_named(p_queue, p_id) r cross join lateral crore.row_at(r.n) k where k.state < 3;
  if not found then return 'duplicate'; end if;
  if v_mode = 'replace' then perform crore.replace_payload(p_queue, j.n, p_job); end if;
  -- A job that is already due is not delayed again, even if no sweep or claim has promoted it yet.
  if v_due is not null and j.attempt = 0 and (j.state = 0 or (j.state = 1 and j.at > p_now)) then
    update crore.jobs set at = v_due where n = j.n;
    if j.state = 1 then perform crore.expect(p_queue, v_due); end if;
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
  update crore.records set body = p_new->>'body', bytes = decode(p_new->>'bytes', 'base64'), size = v_size
    where ctid = any(crore.places(p_queue, array[p_job]));
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
  u crore.jobs;
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
    perform crore.make_rows_of(jsonb_build_array(p_job->'parent'));
    u := crore.row_of(p_job->'parent'->>'queue', p_job->'parent'->>'id');
    if u.state < 4 then perform crore.keep_record(v_job, p_queue, u.n, u.queue); end if;
  end if;
  perform crore.bump(p_queue, blocked => (v_state = 0)::int, scheduled => (v_state = 1)::int, ready => (v_state = 2)::int, bytes => v_size,
    placed => true, due => v_at);
  if v_state = 2 then perform crore.list_job(p_queue, j.priority, j.grp, j.seq) from crore.jobs j where j.n = v_job; end if;
  if p_job ? 'unique' then perform crore.lock_key(p_queue, p_job->'unique', v_id, p_now); end if;
end $$;

-- Whether an id of these jobs occurs twice, or is taken. Generated ids are not looked up.
create function crore.any_taken(p_queue int, p_jobs jsonb, p_now bigint) returns boolean language sql as $$
  select crore.any_id_taken(p_queue, array(select j->>'id' from jsonb_array_elements(p_jobs) j where not j ? 'fresh'), p_now)
$$;

create function crore.any_id_taken(p_queue int, p_ids text[], p_now bigint) returns boolean language plpgsql as $$
begin
  if cardinality(p_ids) = 0 then return false; end if;
  return (select count(distinct i) < count(*) from unnest(p_ids) i)
    or exists (select 1 from crore.found(p_queue, p_ids))
    or exists (select 1 from unnest(p_ids) i cross join lateral (
      select until from crore.ended_ids e where e.queue = p_queue and e.id >= i and e.id <= i order by e.id limit 1) e where e.until > p_now);
end $$;

-- New jobs that concern nobody else, all at once. Those with nothing special about them are fresh: see lib/ready.sql.
create function crore.add_fresh(p_queue int, p_jobs jsonb, p_now bigint) returns void language plpgsql as $$
declare
  v_watched boolean := (select watched > p_now from crore.queues where n = p_queue);
  s record;
begin
  with given as materialized (
    select nextval('crore.backs') as seq, j.*, coalesce(j.at, p_now + coalesce(j.delay, 0)) as due,
      coalesce(j.at, p_now + coalesce(j.delay, 0)) <= p_now and j.priority = 0 and j.grp is null and j.reservation is null as fresh
    from rows from (jsonb_to_recordset(p_jobs) as (id text, body text, bytes text, size int, priority int, at bigint, delay bigint, spec text,
      traits jsonb, "group" text, reservation bigint)) with ordinality as
      j(id, body, bytes, size, priority, at, delay, spec, traits, grp, reservation, place) order by place
  ), numbered as materialized (
    select given.*, case when fresh then seq else crore.next_row() end as n from given
  ), kept as (
    insert into crore.records (n, queue, id, created, size, spec, traits, body, bytes)
    select n, p_queue, id, p_now, size, spec, traits, body, decode(bytes, 'base64') from numbered
  ), queued as (
    insert into crore.jobs (n, queue, state, priority, seq, size, at, reservation, grp)
    select n, p_queue, case when due > p_now then 1 else 2 end, priority, case when due > p_now then 0 else seq end, size,
      case when due > p_now then due end, coalesce(reservation, 0), grp from numbered where not fresh
  ), entered as materialized (
    select grp, count(*)::int as count from numbered where grp is not null and due <= p_now group by grp order by min(seq)
  )
  select count(*) filter (where due > p_now) as later, count(*) filter (where due <= p_now) as ready, coalesce(sum(size), 0) as bytes,
    count(*) filter (where fresh) as fresh, min(seq) filter (where fresh) as head, min(due) filter (where due > p_now) as first,
    (select array_agg(g.grp) from entered g) as groups, (select array_agg(g.count) from entered g) as counts into s
  from numbered;
  perform crore.count_fresh(p_queue, s.fresh, s.head);
  perform crore.bump(p_queue, scheduled => s.later, ready => s.ready, bytes => s.bytes, placed => true, due => coalesce(s.first, 0));
  if s.ready > s.fresh then
    perform crore.list_job(p_queue, l.priority, null, l.seq) from (select j.priority, min(k.seq) as seq
      from jsonb_to_recordset(p_jobs) as j(id text, priority int, "group" text) cross join lateral crore.record_named(p_queue, j.id) r
      cross join lateral crore.row_at(r.n) k where j."group" is null and k.state = 2 group by j.priority) l;
  end if;
  if v_watched then
    insert into crore.events (queue, type, id, at, info) select p_queue, 'added', j.value->>'id', p_now, ''
      from jsonb_array_elements(p_jobs) with ordinality j order by j.ordinality;
    perform crore.signal(p_queue, 'e');
  end if;
  perform crore.enter_groups(p_queue, s.groups, s.counts, p_now);
end $$;

-- Counts new fresh jobs, of which this is the first.
create function crore.count_fresh(p_queue int, p_count bigint, p_first bigint) returns void language plpgsql as $$
declare
  c crore.counters;
begin
  if p_count = 0 then return; end if;
  c := crore.counts(p_queue);
  if c.fresh = 0 then c.head := p_first; end if;
  c.fresh := c.fresh + p_count;
  perform crore.save(c);
end $$;

-- The common case of add, without JSON: fresh jobs whose payloads are text, with the same options. `p_known`: some ids may be taken. Returns
-- false, and adds nothing, if one is or the queue has no room: then add decides. `p_quiet`: the caller signals work.
create function crore.add_plain(
  p_now bigint, p_name text, p_ids text[], p_bodies text[], p_spec text, p_traits jsonb, p_known boolean, p_most bigint, p_bytes bigint,
  p_quiet boolean default false
) returns boolean language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_queue int := crore.ensure(p_name);
  c crore.counters := crore.counts(v_queue);
  v_count int := cardinality(p_ids);
  s record;
begin
  if p_most is not null or p_bytes is not null then
    if not crore.has_room(v_queue, v_count, (select sum(octet_length(b)) from unnest(p_bodies) b), p_most, p_bytes) then return false; end if;
  end if;
  if p_known and crore.any_id_taken(v_queue, p_ids, v_now) then return false; end if;
  with added as (
    insert into crore.records (n, queue, id, created, size, spec, traits, body)
      select nextval('crore.backs'), v_queue, g.id, v_now, octet_length(g.body), p_spec, p_traits, g.body from unnest(p_ids, p_bodies) g(id, body)
      returning n, size
  ) select min(n) as first, sum(size) as bytes into s from added;
  if c.fresh = 0 then c.head := s.first; end if;
  c.fresh := c.fresh + v_count;
  c.ready := c.ready + v_count;
  c.bytes := c.bytes + s.bytes;
  if c.hungry and not p_quiet then
    c.hungry := false;
    perform crore.signal(v_queue, 'w');
  end if;
  perform crore.save(c);
  if (select watched > v_now from crore.queues where n = v_queue) then
    insert into crore.events (queue, type, id, at, info) select v_queue, 'added', i, v_now, '' from unnest(p_ids) i;
    perform crore.signal(v_queue, 'e');
  end if;
  return true;
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
