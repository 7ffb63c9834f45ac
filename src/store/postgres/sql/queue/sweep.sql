-- Periodic maintenance of a queue.

-- Removes a queue that is empty and has no workers and no settings.
create function crore.forget_unused(p_queue int, p_now bigint) returns void language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
begin
  if c.tasks + c.blocked + c.scheduled + c.ready + c.active + c.done + c.dead + c.cancelled > 0 then return; end if;
  if not exists (select 1 from crore.queues where n = p_queue and not paused and limits is null and breaker is null and watched <= p_now) then return; end if;
  if exists (select 1 from crore.sessions where queue = p_queue) or exists (select 1 from crore.keys where queue = p_queue)
    or exists (select 1 from crore.task_locks where queue = p_queue) or exists (select 1 from crore.events where queue = p_queue)
    or exists (select 1 from crore.source_positions where queue = p_queue) or exists (select 1 from crore.schedules where queue = p_queue)
    or exists (select 1 from crore.news where queue = p_queue) or exists (select 1 from crore.ended_ids where queue = p_queue)
    -- A hidden record keeps the number of its queue.
    or exists (select 1 from crore.records where queue = p_queue) then
    return;
  end if;
  delete from crore.groups where queue = p_queue;
  delete from crore.awaited where queue = p_queue;
  delete from crore.history where queue = p_queue;
  delete from crore.counters where queue = p_queue;
  delete from crore.queues where n = p_queue;
end $$;

-- Removes records past their retention; returns the largest number of a state, at most 1,000.
create function crore.forget_old(p_queue int, p_now bigint) returns int language plpgsql as $$
declare
  v_most int := 0;
begin
  for v_state in 4 .. 6 loop
    v_most := greatest(v_most, crore.drop_until(p_queue, v_state, p_now, 1000));
  end loop;
  return v_most;
end $$;

-- Ids whose time is up, and records that somebody has waited for long ago; returns how many.
create function crore.forget_marks(p_queue int, p_now bigint) returns int language plpgsql as $$
declare
  v_ids int;
  v_records int := 0;
  r record;
begin
  delete from crore.ended_ids where queue = p_queue
    and id in (select id from crore.ended_ids where queue = p_queue and until <= p_now limit 1000);
  get diagnostics v_ids = row_count;
  for r in select up from crore.needed where down = 0 and up_queue = p_queue and until <= p_now limit 1000 loop
    perform crore.release(r.up, 0);
    v_records := v_records + 1;
  end loop;
  return v_ids + v_records;
end $$;

-- sweep. The last row says whether there is more, whether anything became ready, how many dead jobs were dropped so far, and for how long no sweep is needed; the
-- others are the entries of dead workers and ended reservations, at most 500 of each worker.
create function crore.sweep(p_now bigint, p_name text, p_lease bigint, p_every bigint)
returns table (
  quiet bigint, more boolean, promoted boolean, dropped bigint, why text, raw boolean, claim bigint, n bigint, id text, state int, priority int, attempt int, crashes int, created bigint,
  at bigint, ran text, spec text, body text, bytes bytea, worker text, token text, task bytea
) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := crore.time(p_now);
  v_queue int;
  v_swept bigint;
  v_back boolean;
  v_stalled boolean;
  v_promoted int;
  v_old int;
  v_freed int;
  v_found boolean := false;
  s record;
begin
  select q.n, c.swept into v_queue, v_swept from crore.queues q, crore.counts(q.n) c where q.name = p_name;
  if not found then return; end if;
  if p_every > 0 and v_swept <= v_now and v_now - v_swept < p_every then
    quiet := crore.quiet_for(v_queue, v_now);
    return next;
    return;
  end if;
  v_queue := crore.enter(p_name);
  if v_queue is null then return; end if;
  v_swept := (crore.counts(v_queue)).swept;
  v_back := coalesce(v_swept > v_now, false);
  if not v_back and p_every > 0 and v_now - v_swept < p_every then return; end if;
  perform crore.bump(v_queue, swept => v_now);
  v_promoted := crore.promote(v_queue, v_now);
  v_old := crore.forget_old(v_queue, v_now);
  delete from crore.keys k where k.queue = v_queue and k.until > 0 and k.until <= v_now;
  delete from crore.groups g where g.queue = v_queue and g.waiting = 0 and g.holds = 0 and g.shelf = 0 and g.held is null
    and g.opened <= v_now - coalesce((select per from crore.group_limits(v_queue)), 0);
  perform crore.trim_events(v_queue, v_now);
  perform crore.drop_task_events(v_now);
  perform crore.drop_history(v_queue, v_now);
  v_freed := crore.forget_marks(v_queue, v_now);
  -- No sweep for a whole lease: no worker was running or the machine was asleep, so no heartbeat could arrive.
  v_stalled := coalesce(v_now - v_swept > p_lease, false);
  if v_stalled then
    update crore.sessions e set deadline = v_now + p_lease where e.queue = v_queue and e.deadline between 0 and v_now;
    update crore.jobs j set until = v_now + p_lease where j.queue = v_queue and j.state = 3 and j.until <= v_now;
  end if;
  -- The clock was set back by more than a lease: sessions without heartbeats must not outlive the difference.
  if v_back and v_swept - v_now > p_lease then
    update crore.sessions e set deadline = v_now + p_lease where e.queue = v_queue and e.deadline > v_swept;
  end if;
  -- A session that was declared dead stays dead until it holds nothing: a late heartbeat does not revive it.
  if not v_stalled then
    update crore.sessions e set deadline = -1 where e.queue = v_queue and e.deadline <= v_now and e.deadline <> -1;
  end if;
  for s in select e.worker, e.raw from crore.sessions e where e.queue = v_queue and e.deadline = -1 loop
    perform crore.split_leases_by(v_queue, s.worker);
    perform crore.split_task_leases_by(v_queue, s.worker);
    return query select * from crore.held_by(v_queue, s.worker, s.raw);
    if found then v_found := true; else delete from crore.sessions e where e.queue = v_queue and e.worker = s.worker; end if;
  end loop;
  if not v_stalled then
    return query select null::bigint, null::boolean, null::boolean, null::bigint, 'reservation', false, null::bigint, j.n, r.id, j.state::int, j.priority, j.attempt, j.crashes,
        r.created, j.at, j.ran, r.spec, r.body, r.bytes, j.worker, j.token, null::bytea
      from (select * from crore.jobs k where k.queue = v_queue and k.state = 3 and k.until <= v_now order by k.until limit 500) j
      cross join lateral crore.record_at(v_queue, j.n) r order by j.until;
    v_found := v_found or found;
  end if;
  if v_promoted > 0 then perform crore.wake(v_queue); end if;
  dropped := (crore.counts(v_queue)).dropped;
  quiet := case when v_found then 0 else crore.quiet_for(v_queue, v_now) end;
  perform crore.forget_unused(v_queue, v_now);
  more := v_promoted = 1000 or v_old = 1000 or v_freed >= 1000 or v_found;
  promoted := v_promoted > 0;
  why := null; raw := null; claim := null; n := null; id := null;
  return next;
end $$;

-- The leases of a dead worker, latest claim first. A server session leaves out jobs whose reservation runs.
create function crore.held_by(p_queue int, p_worker text, p_raw boolean)
returns table (
  quiet bigint, more boolean, promoted boolean, dropped bigint, why text, raw boolean, claim bigint, n bigint, id text, state int, priority int, attempt int, crashes int, created bigint,
  at bigint, ran text, spec text, body text, bytes bytea, worker text, token text, task bytea
) language sql as $$
  select null::bigint, null::boolean, null::boolean, null::bigint, 'worker', p_raw, split_part(e.token, '.', 1)::bigint, e.n, e.id, e.state, e.priority, e.attempt, e.crashes,
    e.created, e.at, e.ran, e.spec, e.body, e.bytes, e.worker, e.token, e.task from (
    select j.seq, j.n, r.id, j.state::int, j.priority, j.attempt, j.crashes, r.created, j.at, j.ran, r.spec, r.body, r.bytes, j.worker, j.token,
        null::bytea as task
      from crore.jobs j cross join lateral crore.record_at(p_queue, j.n) r
      where j.queue = p_queue and j.worker = p_worker and j.state = 3 and (p_worker not like 'relay:%' or j.until is null)
    union all
    select t.seq, t.n, null, null, null, null, null, null, null, null, null, null, null, t.worker, t.token, t.body
      from crore.tasks t where t.queue = p_queue and t.worker = p_worker
  ) e order by split_part(e.token, '.', 1)::bigint desc, e.seq desc limit 500
$$;
