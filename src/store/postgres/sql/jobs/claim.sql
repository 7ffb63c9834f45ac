-- Claiming entries.

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
  v_token text;
  v_back bigint;
  v_first bigint;
  v_last bigint;
  v_bytes bigint;
  v_count int := 0;
  c crore.counters;
  q record;
  t record;
begin
  -- A claim that a crash of the server undoes was not made: its jobs wait again. So it does not wait for the disk.
  perform set_config('synchronous_commit', 'off', true);
  select k.paused or k.limits is not null or k.breaker is not null or k.watched > v_now as special,
      s.deadline is not null as alive, s.deadline + case when p_now is null then p_lease / 16 else 0 end >= v_now + p_lease as renewed
    into q from crore.queues k left join crore.sessions s on s.queue = k.n and s.worker = p_worker and s.deadline >= 0 where k.n = v_queue;
  c := crore.counts(v_queue);
  -- The common cases are fresh jobs only, fresh tasks only, and nothing at all.
  if v_queue is null or q.special or q.alive is not true or c.broken > 0 or c.ready > c.fresh + c.tasks or (c.tasks > 0 and (c.fresh > 0 or c.task_front < 0))
    or (c.scheduled > 0 and c.due <= v_now) then
    return query select * from crore.claim_any(p_now, v_queue, v_now, p_worker, p_lease, p_want, p_nonce);
    return;
  end if;
  if not q.renewed then perform crore.renew_session(p_now, v_queue, p_worker, p_lease); end if;
  v_token := c.claims || '.' || p_nonce;
  if c.tasks > 0 then
    v_back := c.task_back;
    select * into t from crore.lease_tasks(c, p_worker, v_token, p_want);
    c := t.c;
    v_count := cardinality(t.tasks);
  elsif c.fresh > 0 then
    select count(*), min(f.n), max(f.n), sum(f.size) into v_count, v_first, v_last, v_bytes
      from (select r.n, r.size from crore.records r where r.queue = v_queue and r.n >= c.head and r.n < crore.first_row() order by r.n limit p_want) f;
  end if;
  return query select 'ok', c.ready > v_count, case when c.scheduled > 0 then
      (select j.at from crore.jobs j where j.queue = v_queue and j.state = 1 and j.at >= c.due order by j.at limit 1) end,
    v_now, v_token, null::bigint, null, null::int, null::int, null::int, null::bigint, null, null, null, null::bytea, null::bytea;
  if v_back is not null then
    return query select null, null::boolean, null::bigint, null::bigint, null, k.n, null, null::int, null::int, null::int, null::bigint, null, null, null,
      null::bytea, k.body from crore.tasks k where k.queue = v_queue and k.n >= v_back and k.n < c.task_back order by k.n;
  elsif v_count > 0 then
    insert into crore.leases (queue, first, last, left_over, at, worker, token) values (v_queue, v_first, v_last, v_count, v_now, p_worker, v_token);
    return query select null, null::boolean, null::bigint, null::bigint, null, r.n, r.id, 0, 1, 0, r.created, null, r.spec, r.body, r.bytes, null::bytea
        from crore.records r where r.queue = v_queue and r.n between c.head and v_last order by r.n;
    c.head := v_last + 1;
    c.fresh := c.fresh - v_count;
    c.bytes := c.bytes - v_bytes;
  elsif c.hungry then
    return;
  end if;
  c.ready := c.ready - v_count;
  c.active := c.active + v_count;
  c.claims := c.claims + v_count;
  c.hungry := c.hungry or v_count < p_want;
  perform crore.save(c);
end $$;

-- Claiming from a locked queue, whatever is in it.
create function crore.claim_any(p_now bigint, p_queue int, p_time bigint, p_worker text, p_lease bigint, p_want int, p_nonce text)
returns table (
  status text, more boolean, next_at bigint, now bigint, token text, n bigint, id text, priority int, attempt int, crashes int, created bigint, ran text,
  spec text, body text, bytes bytea, task bytea
) language plpgsql as $$
#variable_conflict use_column
declare
  v_queue int := p_queue;
  v_now bigint := p_time;
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
  c := crore.counts(v_queue);
  v_grouping := c.grouped > 0;
  if v_grouping then perform crore.reopen_groups(v_queue, v_now); end if;
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
      case when c.scheduled > 0 then (select j.at from crore.jobs j where j.queue = v_queue and j.state = 1 and j.at >= c.due order by j.at limit 1) end,
      case when v_waits and v_spent then l.opens end,
      case when v_grouping then (select min(g.rests) from crore.groups g where g.queue = v_queue and g.shelf = 3) end) end,
    v_now, token, null::bigint, null, null::int, null::int, null::int, null::bigint, null, null, null, null::bytea, null::bytea;
  if v_count = 0 then return; end if;
  return query select null, null::boolean, null::bigint, null::bigint, null, e.n, e.id, e.priority, e.attempt, e.crashes, e.created, e.ran, e.spec,
      e.body, e.bytes, e.task from (
    select u.place, j.n, r.id, j.priority, j.attempt, j.crashes, r.created, j.ran, r.spec, r.body, r.bytes, null::bytea as task
      from unnest(t.jobs, t.job_places) u(n, place) cross join lateral crore.row_at(u.n) j cross join lateral crore.record_at(v_queue, u.n) r
    union all
    select u.place, k.n, null, null, null, null, null, null, null, null, null, k.body
      from unnest(t.tasks, t.task_places) u(n, place) cross join lateral crore.task_at(v_queue, u.n) k
    ) e order by e.place;
end $$;

-- Gives these jobs to a worker.
create function crore.lease(p_queue int, p_jobs bigint[], p_worker text, p_token text, p_now bigint) returns void language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
  v_fresh bigint[] := array(select n from unnest(p_jobs) n where n >= c.head and n < crore.first_row());
  v_bytes bigint;
  v_more bigint := 0;
begin
  if cardinality(p_jobs) = 0 then return; end if;
  with taken as (
    update crore.jobs set state = 3, attempt = attempt + 1, at = p_now, worker = p_worker, token = p_token, outcome = null, outcome_bytes = null,
      until = case when reservation > 0 then p_now + reservation end where n = any(p_jobs) returning size
  ) select coalesce(sum(size), 0) into v_bytes from taken;
  if c.fresh > 0 and cardinality(v_fresh) > 0 then
    with taken as (
      insert into crore.jobs (n, queue, state, seq, attempt, size, at, worker, token)
      select r.n, p_queue, 3, r.n, 1, r.size, p_now, p_worker, p_token from unnest(v_fresh) u(n)
        cross join lateral crore.record_at(p_queue, u.n) r returning size
    ) select sum(size) into v_more from taken;
    c.head := (select max(n) from unnest(v_fresh) n) + 1;
    c.fresh := c.fresh - cardinality(v_fresh);
  end if;
  c.bytes := c.bytes - v_bytes - v_more;
  perform crore.save(c);
  perform crore.free_waiting_keys(p_queue, p_jobs);
  if (select watched > p_now from crore.queues where n = p_queue) then
    insert into crore.events (queue, type, id, at, info) select p_queue, 'started', r.id, p_now, j.attempt
      from unnest(p_jobs) with ordinality u(n, place) cross join lateral crore.row_at(u.n) j cross join lateral crore.record_at(p_queue, u.n) r order by u.place;
    perform crore.signal(p_queue, 'e');
  end if;
end $$;

-- Frees the unique keys of jobs that hold them only while they wait.
create function crore.free_waiting_keys(p_queue int, p_jobs bigint[]) returns void language sql as $$
  delete from crore.keys k using unnest(p_jobs) u(n)
    cross join lateral crore.record_at(p_queue, u.n) r
    where r.traits->>'scope' = 'waiting' and k.queue = p_queue and k.key = r.traits->>'key' and k.id = r.id
$$;
