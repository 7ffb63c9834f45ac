-- Claiming entries.

-- Moves due jobs to the back of their waiting list; returns how many.
create function crore.promote(p_queue int, p_now bigint) returns int language plpgsql as $$
declare
  v_due bigint[];
  g record;
begin
  if (crore.counts(p_queue)).scheduled = 0 then return 0; end if;
  select array_agg(d.n order by d.at, r.id) into v_due
    from (select n, at from crore.jobs where queue = p_queue and state = 1 and at <= p_now order by at, n limit 1000) d join crore.records r using (n);
  if v_due is null then return 0; end if;
  update crore.jobs j set state = 2, ran = j.at, at = null, seq = u.seq
    from (select d.n, crore.new_place(p_queue, k.grp, d.n) as seq from unnest(v_due) d(n) join crore.jobs k on k.n = d.n) u where j.n = u.n;
  perform crore.bump(p_queue, scheduled => -cardinality(v_due), ready => cardinality(v_due));
  for g in select k.n, k.grp from unnest(v_due) with ordinality d(n, place) join crore.jobs k on k.n = d.n where k.grp is not null order by d.place loop
    perform crore.enter_group(p_queue, g.grp, p_now, 1, g.n);
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

-- The first ready jobs without a group within these priorities.
create function crore.first_jobs(p_queue int, p_low int, p_high int, p_limit bigint) returns bigint[] language sql as $$
  select coalesce(array_agg(n), '{}') from (select n from crore.jobs where queue = p_queue and state = 2 and grp is null
    and priority between p_low and p_high order by priority desc, seq limit greatest(0, p_limit)) f
$$;

-- Leases the raw tasks that have waited longest; returns their numbers.
create function crore.take_tasks(p_queue int, p_worker text, p_token text, p_limit bigint) returns bigint[] language plpgsql as $$
declare
  v_tasks bigint[];
  v_bytes bigint;
begin
  if p_limit <= 0 then return '{}'; end if;
  select coalesce(array_agg(n), '{}') into v_tasks
    from (select n from crore.tasks where queue = p_queue and worker is null order by seq limit p_limit) f;
  if cardinality(v_tasks) = 0 then return v_tasks; end if;
  with taken as (update crore.tasks set worker = p_worker, token = p_token where n = any(v_tasks) returning length(body) as size)
    select sum(size) into v_bytes from taken;
  perform crore.bump(p_queue, tasks => -cardinality(v_tasks), bytes => -v_bytes);
  if exists (select 1 from crore.task_locks where queue = p_queue) then
    update crore.task_locks l set task = f.n
      from (select distinct on (sha256(body)) sha256(body) as hash, n from crore.tasks where n = any(v_tasks) order by sha256(body), seq) f
      where l.queue = p_queue and l.hash = f.hash and l.task is null;
  end if;
  return v_tasks;
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

-- claim. The first row has the status, whether there is more, when to come again, the time and the common part of the tokens; the others are the
-- entries in order, raw tasks with `task`.
create function crore.claim(p_now bigint, p_name text, p_worker text, p_lease bigint, p_want int, p_nonce text)
returns table (
  status text, more boolean, next_at bigint, now bigint, token text, n bigint, id text, priority int, attempt int, crashes int, created bigint, ran text,
  spec text, body text, bytes bytea, task bytea
) language plpgsql as $$
#variable_conflict use_column
declare
  v_queue int := crore.enter(p_name);
  v_now bigint := crore.time(p_now);
  v_count int := 0;
  c crore.counters;
  v_grouping boolean;
  v_turn boolean;
  v_waits boolean;
  v_spent boolean;
  v_broken bigint;
  l record;
  t record;
begin
  if v_queue is null or not crore.renew_session(p_now, v_queue, p_worker, p_lease) then
    return query select 'lost', false, null::bigint, v_now, '', null::bigint, null, null::int, null::int, null::int, null::bigint, null, null, null,
      null::bytea, null::bytea;
    return;
  end if;
  if (select paused from crore.queues q where q.n = v_queue) then
    return query select 'paused', false, null::bigint, v_now, '', null::bigint, null, null::int, null::int, null::int, null::bigint, null, null, null,
      null::bytea, null::bytea;
    return;
  end if;
  v_broken := (crore.counts(v_queue)).broken;
  if v_broken > v_now then
    return query select 'paused', false, v_broken, v_now, '', null::bigint, null, null::int, null::int, null::int, null::bigint, null, null, null,
      null::bytea, null::bytea;
    return;
  end if;
  perform crore.promote(v_queue, v_now);
  select * into l from crore.room_within_limits(v_queue, case when v_broken > 0 then 1 else p_want end, v_now);
  v_grouping := exists (select 1 from crore.groups g where g.queue = v_queue);
  if v_grouping then perform crore.reopen_groups(v_queue, v_now); end if;
  c := crore.counts(v_queue);
  token := c.claims || '.' || p_nonce;
  if l.room > 0 and (v_grouping or c.ready > 0) then
    select * into t from crore.take(v_queue, p_worker, token, l.room, v_now, v_grouping);
    v_count := cardinality(t.jobs) + cardinality(t.tasks);
  end if;
  if v_count > 0 then
    perform crore.lease(v_queue, t.jobs, p_worker, token, v_now);
    perform crore.bump(v_queue, claims => v_count, ready => -v_count, active => v_count, hungry => case when v_count < p_want then true end,
      opened => l.window_opened, started => l.window_started + v_count);
  elsif not c.hungry then
    perform crore.bump(v_queue, hungry => true);
  end if;
  v_turn := v_grouping and crore.any_turn(v_queue, v_now);
  c := crore.counts(v_queue);
  v_waits := v_turn or c.ready > c.grouped;
  -- The open breaker has let one entry through: the next one may follow after another pause, if this one decides nothing. At a limit of the queue nothing more can be claimed for now, whatever waits.
  v_spent := v_count = l.room and (l.room < p_want or l.opens is not null);
  if v_broken > 0 and v_count > 0 then
    v_broken := v_now + (select (q.breaker->>'pause')::bigint from crore.queues q where q.n = v_queue);
    perform crore.bump(v_queue, broken => v_broken, trial => token);
    v_waits := false;
  else
    v_broken := null;
  end if;
  return query select 'ok', v_waits and not v_spent, case when v_broken is not null then v_broken else least(
      case when c.scheduled > 0 then (select min(j.at) from crore.jobs j where j.queue = v_queue and j.state = 1) end,
      case when v_waits and v_spent then l.opens end,
      case when v_grouping then (select min(g.rests) from crore.groups g where g.queue = v_queue and g.shelf = 3) end) end,
    v_now, token, null::bigint, null, null::int, null::int, null::int, null::bigint, null, null, null, null::bytea, null::bytea;
  if v_count = 0 then return; end if;
  return query select null, null::boolean, null::bigint, null::bigint, null, e.n, e.id, e.priority, e.attempt, e.crashes, e.created, e.ran, e.spec,
      e.body, e.bytes, e.task from (
    select u.place, j.n, r.id, j.priority, j.attempt, j.crashes, r.created, j.ran, r.spec, r.body, r.bytes, null::bytea as task
      from unnest(t.jobs, t.job_places) u(n, place) join crore.jobs j on j.n = u.n join crore.records r on r.n = u.n
    union all
    select u.place, k.n, null, null, null, null, null, null, null, null, null, k.body
      from unnest(t.tasks, t.task_places) u(n, place) join crore.tasks k on k.n = u.n
    ) e order by e.place;
end $$;

-- Gives these jobs to a worker.
create function crore.lease(p_queue int, p_jobs bigint[], p_worker text, p_token text, p_now bigint) returns void language plpgsql as $$
declare
  v_bytes bigint;
begin
  if cardinality(p_jobs) = 0 then return; end if;
  with taken as (
    update crore.jobs set state = 3, attempt = attempt + 1, at = p_now, worker = p_worker, token = p_token, outcome = null, outcome_bytes = null,
      until = case when reservation > 0 then p_now + reservation end where n = any(p_jobs) returning size
  ) select sum(size) into v_bytes from taken;
  perform crore.bump(p_queue, bytes => -v_bytes);
  delete from crore.keys k using crore.records r where r.n = any(p_jobs) and r.traits->>'scope' = 'waiting' and k.queue = p_queue
    and k.key = r.traits->>'key' and k.id = r.id;
  if (select watched > p_now from crore.queues where n = p_queue) then
    insert into crore.events (queue, type, id, at, info) select p_queue, 'started', r.id, p_now, j.attempt
      from unnest(p_jobs) with ordinality u(n, place) join crore.jobs j on j.n = u.n join crore.records r on r.n = u.n order by u.place;
    perform crore.signal(p_queue, 'e');
  end if;
end $$;
