-- Choosing the entries of a claim.

-- Moves due jobs to the back of their waiting list; returns how many.
create function crore.promote(p_queue int, p_now bigint) returns int language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
  v_due bigint[];
  v_first bigint;
  g record;
begin
  if c.scheduled = 0 or c.due > p_now then return 0; end if;
  select array_agg(d.n order by d.at, r.id), min(d.at) into v_due, v_first
    from (select n, at from crore.jobs where queue = p_queue and state = 1 and at >= c.due and at <= p_now order by at, n limit 1000) d
    cross join lateral crore.record_at(p_queue, d.n) r;
  v_first := coalesce(v_first, p_now + 1);
  if v_first > c.due then
    c.due := v_first;
    perform crore.save(c);
  end if;
  if v_due is null then return 0; end if;
  update crore.jobs j set state = 2, ran = j.at, at = null, seq = u.seq
    from (select d.place, crore.new_place(p_queue, k.grp, d.n) as seq from unnest(v_due, crore.row_places(v_due)) d(n, place)
      cross join lateral crore.row_at(d.n) k) u where j.ctid = u.place;
  perform crore.bump(p_queue, scheduled => -cardinality(v_due), ready => cardinality(v_due), placed => true);
  perform crore.list_job(p_queue, l.priority, null, l.seq) from (select k.priority, min(k.seq) as seq from unnest(v_due) d(n)
    cross join lateral crore.row_at(d.n) k where k.grp is null group by k.priority) l;
  for g in select k.n, k.grp from unnest(v_due) with ordinality d(n, place) cross join lateral crore.row_at(d.n) k where k.grp is not null order by d.place loop
    perform crore.enter_group(p_queue, g.grp, p_now, g.n);
  end loop;
  return cardinality(v_due);
end $$;

-- How much of `p_want` the limits of the queue allow; when the rate allows more, if that is what blocks them; and its window.
create function crore.room_within_limits(
  p_queue int, p_want int, p_now bigint, out room int, out opens bigint, out window_opened bigint, out window_started bigint
) language plpgsql as $$
declare
  v_limits jsonb := (select limits from crore.queues where n = p_queue);
  c crore.counters;
  v_most bigint := p_want;
  v_left bigint;
begin
  room := p_want;
  if v_limits is null then return; end if;
  c := crore.counts(p_queue);
  if v_limits ? 'concurrency' then v_most := least(v_most, (v_limits->>'concurrency')::bigint - c.active); end if;
  if v_limits ? 'rate' then
    select w.opened, w.started into window_opened, window_started
      from crore.rate_window(c.opened, c.started, (v_limits->'rate'->>'per')::bigint, p_now) w;
    v_left := (v_limits->'rate'->>'count')::bigint - window_started;
    if v_left <= v_most then opens := window_opened + (v_limits->'rate'->>'per')::bigint; end if;
    v_most := least(v_most, v_left);
  end if;
  room := greatest(0, v_most);
end $$;

-- Renews a session; returns false if it is gone. By the server's own clock a session is renewed once a sixteenth of its lease has passed: a row
-- that every claim updates would grow a long chain of versions.
create function crore.renew_session(p_now bigint, p_queue int, p_worker text, p_lease bigint) returns boolean language plpgsql as $$
declare
  v_deadline bigint;
  v_new bigint := crore.time(p_now) + p_lease;
begin
  select deadline into v_deadline from crore.sessions where queue = p_queue and worker = p_worker and deadline >= 0;
  if not found then return false; end if;
  if v_deadline + (case when p_now is null then p_lease / 16 else 0 end) >= v_new then return true; end if;
  update crore.sessions set deadline = greatest(deadline, v_new) where queue = p_queue and worker = p_worker and deadline >= 0;
  return found;
end $$;

-- Leases the raw tasks that have waited longest; returns their numbers.
create function crore.take_tasks(p_queue int, p_worker text, p_token text, p_limit bigint) returns bigint[] language plpgsql as $$
declare
  t record;
begin
  if p_limit <= 0 then return '{}'; end if;
  select * into t from crore.lease_tasks(crore.counts(p_queue), p_worker, p_token, p_limit);
  if cardinality(t.tasks) > 0 then perform crore.save(t.c); end if;
  return t.tasks;
end $$;

-- Takes higher priorities, then groups in turn, then raw tasks and default jobs alternately, then lower priorities. Returns the numbers of jobs and of
-- tasks, with their places.
create function crore.take(
  p_queue int, p_worker text, p_token text, p_want int, p_now bigint, p_grouping boolean,
  out jobs bigint[], out job_places int[], out tasks bigint[], out task_places int[]
) language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
  v_first bigint[];
  v_grouped bigint[];
  v_middle bigint[];
  v_rest bigint[];
  v_default bigint;
  v_wanted int;
  v_most bigint;
  v_turns int;
  v_base int;
begin
  tasks := '{}';
  task_places := '{}';
  if c.tasks = 0 and not p_grouping then
    jobs := crore.first_jobs(p_queue, -2147483648, 2147483647, p_want);
    select array_agg(i) into job_places from generate_series(1, cardinality(jobs)) i;
    return;
  end if;
  v_first := crore.first_jobs(p_queue, 1, 2147483647, p_want);
  v_default := cardinality(crore.first_jobs(p_queue, 0, 0, p_want));
  -- If the number is odd, the kinds alternate in getting the larger half. With three kinds there are two such alternations.
  v_turns := case when c.grouped > 0 then 2 else 1 end;
  v_wanted := p_want - cardinality(v_first);
  v_most := greatest(v_wanted / 2 + (v_wanted % 2) * (c.claims % 2), v_wanted - c.tasks - v_default);
  v_grouped := crore.take_turns(p_queue, v_most::int, p_now);
  v_wanted := v_wanted - cardinality(v_grouped);
  v_most := least(c.tasks, greatest(v_wanted / 2 + (v_wanted % 2) * ((c.claims / v_turns) % 2), v_wanted - v_default));
  tasks := crore.take_tasks(p_queue, p_worker, p_token, v_most);
  v_middle := crore.first_jobs(p_queue, 0, 0, v_wanted - cardinality(tasks));
  v_rest := crore.first_jobs(p_queue, -2147483648, -1, v_wanted - cardinality(tasks) - cardinality(v_middle));
  jobs := v_first || v_grouped || v_middle || v_rest;
  v_base := cardinality(v_first) + cardinality(v_grouped);
  select array_agg(case when i <= v_base then i when i <= v_base + cardinality(v_middle) then v_base + 2 * (i - v_base)
    else v_base + 2000000 + i end order by i) into job_places from generate_series(1, cardinality(jobs)) i;
  select array_agg(v_base + 2 * i - 1 order by i) into task_places from generate_series(1, cardinality(tasks)) i;
end $$;

