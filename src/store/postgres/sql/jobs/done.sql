-- The common cases of settle, with a few statements for all.

-- Jobs that are done, without a unique key and not the jobs of batches. Arrays of the same length: numbers, own parts of the tokens, attempts and ids of the
-- leases, results (text or null) and lines of the history (or null).
create function crore.done(
  p_now bigint, p_cross boolean, p_name text, p_jobs bigint[], p_tokens text[], p_attempts int[], p_ids text[], p_results text[], p_lines text[]
) returns boolean[] language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_cross boolean := p_cross or crore.any_far() and crore.concerns_others(p_jobs);
  v_queue int;
  v_places bigint[];
  v_jobs bigint[];
  v_ids text[];
  v_results text[];
  v_keeps bigint[];
  v_needed bigint[] := '{}';
  v_gone bigint[];
  v_groups text[];
  v_kept bigint;
  v_linked boolean;
  v_special boolean;
  v_least bigint;
  v_most bigint;
  v_count bigint;
  v_applied boolean[] := array_fill(false, array[cardinality(p_jobs)]);
  v_events text[] := '{}';
  c crore.counters;
  q record;
  e record;
begin
  if v_cross then perform crore.lock_all_queues(); end if;
  v_queue := crore.enter(p_name);
  if v_queue is null then return v_applied; end if;
  -- How long each is kept: 0 is not at all.
  select array_agg(f.place), array_agg(f.n), array_agg(f.id), array_agg(f.result), array_agg(f.grp) filter (where f.grp is not null), array_agg(f.keep),
      count(*) filter (where f.keep > 0), max(f.count) filter (where f.keep > 0), bool_or(f.linked), bool_or(f.special),
      min(f.keep) filter (where f.keep > 0), max(f.keep)
    into v_places, v_jobs, v_ids, v_results, v_groups, v_keeps, v_kept, v_count, v_linked, v_special, v_least, v_most
    from (select g.place, j.n, r.id, g.result, j.grp, j.linked, r.traits ? 'window' as special,
        crore.keep_count(r.traits, 4) as count, case when crore.keep_count(r.traits, 4) > 0 then crore.keep_ms(r.traits, 4) else 0 end as keep
      from unnest(p_jobs, p_tokens, p_attempts, p_ids, p_results) with ordinality g(n, token, attempt, id, result, place)
      join crore.jobs j on j.n = g.n and j.queue = v_queue and j.token = g.token and j.attempt = g.attempt
      join crore.records r on r.queue = v_queue and r.n = j.n and r.id = g.id) f;
  if v_jobs is null then return v_applied; end if;
  select k.breaker is not null as breaker, k.limits is not null as limits, k.watched > v_now as watched into q from crore.queues k where k.n = v_queue;
  c := crore.counts(v_queue);
  for i in 1 .. cardinality(v_places) loop
    v_applied[v_places[i]] := true;
    if q.breaker then v_events := v_events || crore.count_outcome(v_queue, v_now, p_tokens[v_places[i]], true); end if;
  end loop;
  if c.awaited > 0 then
    for i in 1 .. cardinality(v_jobs) loop
      perform crore.keep_awaited(v_queue, v_now, v_jobs[i], v_ids[i]);
    end loop;
  end if;
  if v_linked or c.awaited > 0 then
    v_needed := array(select u.n from unnest(v_jobs) u(n) where exists (select 1 from crore.needed d where d.up = u.n));
  end if;
  if v_kept + cardinality(v_needed) > 0 then
    update crore.jobs j set state = 4, ran = j.at || ' ' || j.worker, at = v_now, worker = null, token = null, outcome = u.result,
        until = case when u.keep > 0 then v_now + u.keep else crore.hidden() end
      from unnest(v_jobs, v_results, v_keeps) u(n, result, keep) where j.n = u.n and (u.keep > 0 or u.n = any(v_needed));
  end if;
  if v_special then
    insert into crore.ended_ids (queue, id, until) select v_queue, d.id, v_now + (d.traits->>'window')::bigint
      from crore.records d where d.queue = v_queue and d.n = any(v_jobs) and d.traits ? 'window' on conflict (queue, id) do update set until = excluded.until;
  end if;
  if v_kept + cardinality(v_needed) < cardinality(v_jobs) then
    v_gone := case when v_kept + cardinality(v_needed) = 0 then v_jobs
      else array(select u.n from unnest(v_jobs, v_keeps) u(n, keep) where u.keep = 0 and not u.n = any(v_needed)) end;
    delete from crore.jobs where n = any(v_gone);
    delete from crore.records where queue = v_queue and n = any(v_gone);
    delete from crore.notes where n = any(v_gone);
  end if;
  if p_lines is not null then
    for e in select u.n, u.line from unnest(p_jobs, p_lines) with ordinality u(n, line, place) where u.line is not null and v_applied[u.place]
        and not u.n = any(coalesce(v_gone, '{}')) loop
      perform crore.append_attempt(e.n, e.line);
    end loop;
  end if;
  if q.watched then
    insert into crore.events (queue, type, id, at, info) select v_queue, 'done', id, v_now, '' from unnest(v_ids) id;
    perform crore.signal(v_queue, 'e');
  end if;
  perform crore.bump(v_queue, active => -cardinality(v_jobs), done => v_kept, done_from => v_now + v_least);
  if v_groups is not null or cardinality(v_events) > 0 then
    perform crore.finish_settling(v_queue, v_now, coalesce(v_groups, '{}'), '{}', v_events);
  end if;
  if v_linked then
    perform crore.notify_dependents(case when v_cross then null else array[v_queue] end, v_now, v_jobs, v_ids,
      array_fill(4, array[cardinality(v_jobs)]));
  end if;
  if v_kept > 0 and c.done + v_kept > v_count then perform crore.drop_oldest(v_queue, 4, v_most, v_count, v_now); end if;
  if v_groups is not null or 'closed' = any(v_events) or q.limits then perform crore.wake(v_queue); end if;
  return v_applied;
end $$;

-- Raw tasks that are done.
create function crore.done_tasks(p_now bigint, p_name text, p_tasks bigint[], p_tokens text[]) returns boolean[] language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_queue int := crore.enter(p_name);
  v_gone bigint[];
  v_events text[] := '{}';
  q record;
begin
  if v_queue is null then return array_fill(false, array[cardinality(p_tasks)]); end if;
  with gone as (delete from crore.tasks t using unnest(p_tasks, p_tokens) g(n, token) where t.n = g.n and t.queue = v_queue and t.token = g.token returning t.n)
    select array_agg(n) into v_gone from gone;
  if v_gone is null then return array_fill(false, array[cardinality(p_tasks)]); end if;
  select k.breaker is not null as breaker, k.limits is not null as limits, exists (select 1 from crore.task_locks l where l.queue = k.n) as locks
    into q from crore.queues k where k.n = v_queue;
  if q.locks then delete from crore.task_locks where queue = v_queue and task = any(v_gone); end if;
  if q.breaker then
    for i in 1 .. cardinality(p_tasks) loop
      if p_tasks[i] = any(v_gone) then v_events := v_events || crore.count_outcome(v_queue, v_now, p_tokens[i], true); end if;
    end loop;
    perform crore.breaker_events(v_queue, v_now, v_events);
  end if;
  perform crore.bump(v_queue, active => -cardinality(v_gone));
  if 'closed' = any(v_events) or q.limits then perform crore.wake(v_queue); end if;
  if cardinality(v_gone) = cardinality(p_tasks) then return array_fill(true, array[cardinality(p_tasks)]); end if;
  return array(select n = any(v_gone) from unnest(p_tasks) with ordinality u(n, place) order by place);
end $$;
