-- Jobs that are ready. Most are fresh: they were added with nothing special about them and nothing has happened to them since. A fresh job has only its
-- record; its number, below first_row(), is its place among the jobs of the default priority. The fresh jobs of a queue are exactly the records with such
-- numbers from `head` on. Those below it are leased by a row for all jobs of their claim (see lib/leases.sql), or have a row in jobs, like all
-- others, whose numbers are from first_row() on unless they were fresh once.
-- Ready jobs with a row and without a group are in lanes, one for each priority: `lanes` are the priorities in descending order, `fronts` and `backs` lower
-- bounds of the places below and above 0. Null if unknown.

create function crore.first_row() returns bigint language sql immutable as $$ select 500000000000000 $$;

-- A bound that no place reaches: there is no job in this part of the lane.
create function crore.nowhere() returns bigint language sql immutable as $$ select 9000000000000000000 $$;

create function crore.next_row() returns bigint language sql as $$ select crore.first_row() + nextval('crore.job_numbers') $$;

-- The numbers of jobs by their ids, one look-up each. A plan that was made for an empty table may use the wrong index, and then read all jobs of a large
-- queue: with `= any` always, with `=` if both cost the same. A range in order leaves no choice.
create function crore.found(p_queue int, p_ids text[]) returns setof bigint language sql stable as $$
  select f.n from unnest(p_ids) i cross join lateral (select r.n from crore.records r where r.queue = p_queue and r.id >= i and r.id <= i
    order by r.id limit 1) f
$$;

-- The same for a whole record, by the id or the number of its job, and for the row of a job. A join with the tables themselves may be turned around: when they are
-- analyzed while nothing can be vacuumed, they seem to have many pages and few rows, and reading all of it once seems to be cheaper than a few look-ups.
create function crore.record_named(p_queue int, p_id text) returns setof crore.records language sql stable as $$
  select * from crore.records where queue = p_queue and id >= p_id and id <= p_id order by id limit 1
$$;

create function crore.record_at(p_queue int, p_job bigint) returns setof crore.records language sql stable as $$
  select * from crore.records where queue = p_queue and n >= p_job and n <= p_job order by n limit 1
$$;

create function crore.row_at(p_job bigint) returns setof crore.jobs language sql stable as $$
  select * from crore.jobs where n >= p_job and n <= p_job order by n limit 1
$$;

-- The places of records in their table by the numbers of their jobs, for the same reason. They are valid while the queue is locked.
create function crore.places(p_queue int, p_jobs bigint[]) returns tid[] language sql stable as $$
  select array(select f.ctid from unnest(p_jobs) with ordinality i(n, place) cross join lateral (select r.ctid from crore.records r
    where r.queue = p_queue and r.n >= i.n and r.n <= i.n order by r.n limit 1) f order by i.place)
$$;

-- The same for the rows of jobs, all of which exist.
create function crore.row_places(p_jobs bigint[]) returns tid[] language sql stable as $$
  select array(select f.ctid from unnest(p_jobs) with ordinality i(n, place)
    cross join lateral (select k.ctid from crore.jobs k where k.n >= i.n and k.n <= i.n order by k.n limit 1) f order by i.place)
$$;

-- Gives fresh jobs a row before something happens to them. To be called first by whatever finds jobs by their ids and changes them.
create function crore.make_rows(p_queue int, p_ids text[]) returns void language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
  v_seqs bigint[];
begin
  perform crore.split_leases_of(p_queue, p_ids);
  if c.fresh = 0 then return; end if;
  select array_agg(n) into v_seqs from crore.found(p_queue, p_ids) n where n >= c.head and n < crore.first_row();
  if v_seqs is null then return; end if;
  with moved as (
    update crore.records r set n = u.n from (select f.seq, crore.next_row() as n, f.place
      from unnest(v_seqs, crore.places(p_queue, v_seqs)) f(seq, place)) u where r.ctid = u.place
    returning u.n, u.seq, r.size
  ) insert into crore.jobs (n, queue, state, seq, size) select n, p_queue, 2, seq, size from moved;
  perform crore.bump(p_queue, fresh => -cardinality(v_seqs));
  perform crore.list_job(p_queue, 0, null, (select min(seq) from unnest(v_seqs) seq));
end $$;

-- The same for jobs of several queues: [{queue, id}].
create function crore.make_rows_of(p_refs jsonb) returns void language sql as $$
  select crore.make_rows(q.n, g.ids) from (select r->>'queue' as name, array_agg(r->>'id') as ids from jsonb_array_elements(p_refs) r group by 1) g
    join crore.queues q on q.name = g.name
$$;

-- The row of a job; null if there is none.
create function crore.row_of(p_name text, p_id text) returns crore.jobs language plpgsql as $$
declare
  v crore.jobs;
begin
  select k.* into v from crore.queues q cross join lateral crore.record_named(q.n, p_id) r cross join lateral crore.row_at(r.n) k where q.name = p_name;
  return v;
end $$;

-- A job is scheduled for this time: lowers the bound. Not needed by callers that pass the time to bump.
create function crore.expect(p_queue int, p_at bigint) returns void language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
begin
  if c.due <= p_at then return; end if;
  c.due := p_at;
  perform crore.save(c);
end $$;

-- A job with a row is ready at this place: lowers the bound of its lane. The caller counts it with `placed`.
create function crore.list_job(p_queue int, p_priority int, p_group text, p_seq bigint) returns void language plpgsql as $$
declare
  c crore.counters;
  i int;
begin
  if p_group is not null then return; end if;
  c := crore.counts(p_queue);
  if c.lanes is null then return; end if;
  i := array_position(c.lanes, p_priority);
  if i is not null and p_seq >= (case when p_seq < 0 then c.fronts[i] else c.backs[i] end) then return; end if;
  if i is null then
    -- That many priorities are not worth remembering.
    if cardinality(c.lanes) >= 64 then
      c.lanes := null;
      perform crore.save(c);
      return;
    end if;
    i := 1 + (select count(*) from unnest(c.lanes) l where l > p_priority);
    c.lanes := c.lanes[:i - 1] || p_priority || c.lanes[i:];
    c.fronts := c.fronts[:i - 1] || 0::bigint || c.fronts[i:];
    c.backs := c.backs[:i - 1] || crore.nowhere() || c.backs[i:];
  end if;
  if p_seq < 0 then c.fronts[i] := p_seq; else c.backs[i] := p_seq; end if;
  perform crore.save(c);
end $$;

-- Looks at every ready job with a row to find the lanes.
create function crore.find_lanes(p_queue int) returns void language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
  v_priority int := 2147483647;
begin
  c.lanes := '{}';
  c.fronts := '{}';
  c.backs := '{}';
  for i in 1 .. 64 loop
    select priority into v_priority from crore.jobs where queue = p_queue and state = 2 and grp is null
      and (priority < v_priority or i = 1) order by priority desc limit 1;
    exit when v_priority is null;
    c.lanes := c.lanes || v_priority;
    c.fronts := c.fronts || (-crore.nowhere());
    c.backs := c.backs || 0::bigint;
    if i = 64 then c.lanes := null; end if;
  end loop;
  perform crore.save(c);
end $$;

-- The numbers of the first ready jobs without a group within these priorities. Raises the bounds of the lanes to the first job of each.
create function crore.first_jobs(p_queue int, p_low int, p_high int, p_limit bigint) returns bigint[] language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
  v_rows bigint := c.ready - c.tasks - c.grouped - c.fresh;
  v_jobs bigint[] := '{}';
  v_fresh boolean := c.fresh > 0 and p_low <= 0 and p_high >= 0;
  v_changed boolean := false;
  v_left bigint;
  f record;
begin
  if p_limit <= 0 then return v_jobs; end if;
  if v_rows > 0 and c.lanes is null then
    perform crore.find_lanes(p_queue);
    c := crore.counts(p_queue);
  end if;
  if v_rows > 0 and c.lanes is null then return crore.first_of_many(p_queue, p_low, p_high, p_limit, c.head); end if;
  for i in 1 .. case when v_rows > 0 then cardinality(c.lanes) else 0 end loop
    v_left := p_limit - cardinality(v_jobs);
    exit when v_left <= 0;
    continue when c.lanes[i] > p_high or c.lanes[i] < p_low;
    if v_fresh and c.lanes[i] < 0 then
      v_jobs := v_jobs || crore.fresh_jobs(p_queue, c.head, v_left);
      v_fresh := false;
      v_left := p_limit - cardinality(v_jobs);
      exit when v_left <= 0;
    end if;
    select * into f from crore.lane_jobs(p_queue, c.lanes[i], c.fronts[i], c.backs[i], v_left);
    if f.front <> c.fronts[i] or f.back <> c.backs[i] then
      c.fronts[i] := f.front;
      c.backs[i] := f.back;
      v_changed := true;
    end if;
    if v_fresh and c.lanes[i] = 0 then
      select v_jobs || array_agg(n order by seq) into v_jobs from (
        select * from (select n, seq from unnest(f.jobs, f.seqs) l(n, seq) union all select n, n from unnest(crore.fresh_jobs(p_queue, c.head, v_left)) n) b
        order by seq limit v_left) m;
      v_fresh := false;
    else
      v_jobs := v_jobs || f.jobs;
    end if;
  end loop;
  if v_changed then perform crore.save(crore.without_empty_lanes(c)); end if;
  if v_fresh then v_jobs := v_jobs || crore.fresh_jobs(p_queue, c.head, p_limit - cardinality(v_jobs)); end if;
  return v_jobs;
end $$;

create function crore.fresh_jobs(p_queue int, p_head bigint, p_limit bigint) returns bigint[] language sql as $$
  select array(select n from crore.records where queue = p_queue and n >= p_head and n < crore.first_row() order by n limit greatest(0, p_limit))
$$;

-- The first jobs of a lane, and its bounds.
create function crore.lane_jobs(
  p_queue int, p_priority int, p_front bigint, p_back bigint, p_limit bigint, out jobs bigint[], out seqs bigint[], out front bigint, out back bigint
) language plpgsql as $$
declare
  b record;
begin
  select coalesce(array_agg(n), '{}'), coalesce(array_agg(seq), '{}') into jobs, seqs from (select n, seq from crore.jobs
    where p_front < 0 and queue = p_queue and state = 2 and grp is null and priority = p_priority and seq >= p_front and seq < 0 order by seq limit p_limit) f;
  front := coalesce(seqs[1], 0);
  back := p_back;
  if p_back = crore.nowhere() or cardinality(jobs) = p_limit then return; end if;
  select coalesce(array_agg(n), '{}') as jobs, coalesce(array_agg(seq), '{}') as seqs into b from (select n, seq from crore.jobs
    where queue = p_queue and state = 2 and grp is null and priority = p_priority and seq >= greatest(p_back, 0) order by seq
    limit p_limit - cardinality(lane_jobs.jobs)) f;
  back := coalesce(b.seqs[1], crore.nowhere());
  jobs := jobs || b.jobs;
  seqs := seqs || b.seqs;
end $$;

create function crore.without_empty_lanes(c crore.counters) returns crore.counters language plpgsql as $$
begin
  for i in reverse cardinality(c.lanes) .. 1 loop
    continue when c.fronts[i] < 0 or c.backs[i] < crore.nowhere();
    c.lanes := c.lanes[:i - 1] || c.lanes[i + 1:];
    c.fronts := c.fronts[:i - 1] || c.fronts[i + 1:];
    c.backs := c.backs[:i - 1] || c.backs[i + 1:];
  end loop;
  return c;
end $$;

-- The same for a queue with very many priorities, without bounds.
create function crore.first_of_many(p_queue int, p_low int, p_high int, p_limit bigint, p_head bigint) returns bigint[] language sql as $$
  select array(select n from (
    (select n, priority, seq from crore.jobs where queue = p_queue and state = 2 and grp is null and priority between p_low and p_high
      order by priority desc, seq limit p_limit)
    union all (select n, 0, n from crore.records where 0 between p_low and p_high and queue = p_queue and n >= p_head and n < crore.first_row()
      order by n limit p_limit)) b order by priority desc, seq limit p_limit)
$$;
