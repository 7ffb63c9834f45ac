-- Settings of a queue, and removing everything in it.

-- configure. Null: unchanged; p_limits and p_breaker are objects, empty ones for none.
create function crore.configure(p_now bigint, p_name text, p_paused boolean, p_limits jsonb, p_breaker jsonb) returns void language plpgsql as $$
declare
  v_queue int := crore.ensure(p_name);
begin
  if p_paused is not null then update crore.queues set paused = p_paused where n = v_queue; end if;
  -- To end a pause by hand closes the breaker, too.
  if not p_paused then
    if (crore.counts(v_queue)).broken > 0 then perform crore.event(v_queue, crore.time(p_now), 'breaker', '', 'closed'); end if;
    perform crore.bump(v_queue, failed => 0, broken => 0, trial => '');
  end if;
  if p_limits is not null then
    update crore.queues set limits = nullif(p_limits, '{}') where n = v_queue;
    -- Groups blocked by the old limits are checked again at their next turn.
    update crore.groups set shelf = 1, turn = t.turn from (select nextval('crore.turns') as turn) t where queue = v_queue and shelf in (2, 3);
    perform crore.count_holds(v_queue);
    if not (select ordered from crore.group_limits(v_queue)) then
      update crore.groups set held = null where queue = v_queue and held is not null;
    end if;
  end if;
  if p_breaker is not null then
    update crore.queues set breaker = nullif(p_breaker, '{}') where n = v_queue;
    if p_breaker = '{}' then perform crore.bump(v_queue, failed => 0, broken => 0, trial => ''); end if;
  end if;
  if p_paused is not true then perform crore.signal(v_queue, 'w'); end if;
end $$;

-- obliterate: everything except the sessions. For dependents in other queues, its jobs count as cancelled.
create function crore.obliterate(p_now bigint, p_name text) returns void language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_queue int;
  v_ups bigint[];
  v_ids text[];
  v_downs bigint[];
  c crore.counters;
  v_down bigint;
begin
  perform crore.lock_all_queues();
  v_queue := crore.enter(p_name);
  if v_queue is null then return; end if;
  select coalesce(array_agg(n), '{}'), coalesce(array_agg(id), '{}') into v_ups, v_ids from crore.records r
    where r.queue = v_queue and exists (select 1 from crore.edges e where e.up = r.n);
  select coalesce(array_agg(distinct d.down), '{}') into v_downs from crore.needed d join crore.jobs j on j.n = d.down where j.queue = v_queue;
  delete from crore.edges e using crore.jobs r where r.n = e.down and r.queue = v_queue;
  delete from crore.needed d using crore.jobs r where r.n = d.up and r.queue = v_queue;
  delete from crore.notes t using crore.jobs r where r.n = t.n and r.queue = v_queue;
  delete from crore.batches b using crore.jobs r where r.n = b.n and r.queue = v_queue;
  delete from crore.jobs where queue = v_queue;
  delete from crore.leases where queue = v_queue;
  delete from crore.records where queue = v_queue;
  delete from crore.tasks where queue = v_queue;
  delete from crore.task_leases where queue = v_queue;
  delete from crore.task_locks where queue = v_queue;
  delete from crore.keys where queue = v_queue;
  delete from crore.groups where queue = v_queue;
  delete from crore.events where queue = v_queue;
  delete from crore.ended_ids where queue = v_queue;
  delete from crore.awaited where queue = v_queue;
  delete from crore.history where queue = v_queue;
  update crore.queues set paused = false where n = v_queue;
  c := crore.counts(v_queue);
  perform crore.bump(v_queue, blocked => -c.blocked, scheduled => -c.scheduled, ready => -c.ready, active => -c.active, done => -c.done,
    dead => -c.dead, cancelled => -c.cancelled, fresh => -c.fresh, awaited => -c.awaited, tasks => -c.tasks, bytes => -c.bytes, grouped => -c.grouped, dropped => -c.dropped,
    failed => 0, broken => 0, trial => '');
  perform crore.notify_dependents(null, v_now, v_ups, v_ids, array_fill(6, array[cardinality(v_ups)]));
  foreach v_down in array v_downs loop
    perform crore.release_needs(null, v_down);
  end loop;
  perform crore.signal(v_queue, 'r');
  perform crore.forget_unused(v_queue, v_now);
end $$;

-- watchForEnd: keeps the records of these jobs when they end, and signals it. Returns the ids of those that have ended or do not exist.
create function crore.watch_for_end(p_name text, p_ids text[]) returns table (id text) language plpgsql as $$
#variable_conflict use_column
declare
  v_queue int := crore.enter(p_name);
  v_count int;
begin
  insert into crore.awaited (queue, id) select r.queue, r.id from crore.found(v_queue, p_ids) f(n)
    cross join lateral crore.record_at(v_queue, f.n) r left join lateral crore.row_at(r.n) j on true
    where coalesce(j.state, 2) < 4 on conflict do nothing;
  get diagnostics v_count = row_count;
  if v_count > 0 then perform crore.bump(v_queue, awaited => v_count); end if;
  return query select u.id from unnest(p_ids) u(id) where not exists (select 1 from crore.record_named(v_queue, u.id) r
    left join lateral crore.row_at(r.n) j on true where coalesce(j.state, 2) < 4);
end $$;
