-- The common case of settle, with a few statements for all: jobs that are done, without a unique key and not the jobs of batches. Arrays of the same length:
-- numbers, own parts of the tokens, attempts and ids of the leases, results (text or null) and lines of the history (or null).
create function crore.done(
  p_now bigint, p_cross boolean, p_name text, p_jobs bigint[], p_tokens text[], p_attempts int[], p_ids text[], p_results text[], p_lines text[]
) returns boolean[] language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_cross boolean := p_cross or crore.concerns_others(p_jobs);
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
  v_breaker boolean;
  v_count bigint;
  v_applied boolean[] := array_fill(false, array[cardinality(p_jobs)]);
  v_events text[] := '{}';
  e record;
begin
  if v_cross then perform crore.lock_all_queues(); end if;
  v_queue := crore.enter(p_name);
  if v_queue is null then return v_applied; end if;
  -- How long each is kept: 0 is not at all.
  select array_agg(f.place), array_agg(f.n), array_agg(f.id), array_agg(f.result), array_agg(f.grp) filter (where f.grp is not null), array_agg(f.keep),
      count(*) filter (where f.keep > 0), max(f.count) filter (where f.keep > 0)
    into v_places, v_jobs, v_ids, v_results, v_groups, v_keeps, v_kept, v_count
    from (select g.place, j.n, r.id, g.result, j.grp, k.count, case when k.count > 0 then k.ms else 0 end as keep
      from unnest(p_jobs, p_tokens, p_attempts, p_ids, p_results) with ordinality g(n, token, attempt, id, result, place)
      join crore.jobs j on j.n = g.n and j.queue = v_queue and j.token = g.token and j.attempt = g.attempt
      join crore.records r on r.n = j.n and r.id = g.id
      cross join lateral (select crore.keep_ms(r.traits, 4) as ms, crore.keep_count(r.traits, 4) as count) k order by g.place) f;
  if v_jobs is null then return v_applied; end if;
  v_breaker := (select breaker is not null from crore.queues q where q.n = v_queue);
  for i in 1 .. cardinality(v_places) loop
    v_applied[v_places[i]] := true;
    if v_breaker then v_events := v_events || crore.count_outcome(v_queue, v_now, p_tokens[v_places[i]], true); end if;
  end loop;
  if exists (select 1 from crore.awaited where queue = v_queue) then
    for i in 1 .. cardinality(v_jobs) loop
      perform crore.keep_awaited(v_queue, v_now, v_jobs[i], v_ids[i]);
    end loop;
  end if;
  if exists (select 1 from crore.needed) then
    v_needed := array(select u.n from unnest(v_jobs) u(n) where exists (select 1 from crore.needed d where d.up = u.n));
  end if;
  update crore.jobs j set state = 4, ran = j.at || ' ' || j.worker, at = v_now, worker = null, token = null, outcome = u.result,
      until = case when u.keep > 0 then v_now + u.keep else crore.hidden() end
    from unnest(v_jobs, v_results, v_keeps) u(n, result, keep) where j.n = u.n and (u.keep > 0 or u.n = any(v_needed));
  insert into crore.ended_ids (queue, id, until) select v_queue, d.id, v_now + (d.traits->>'window')::bigint
    from crore.records d where d.n = any(v_jobs) and d.traits ? 'window' on conflict (queue, id) do update set until = excluded.until;
  if v_kept + cardinality(v_needed) < cardinality(v_jobs) then
    v_gone := array(select u.n from unnest(v_jobs, v_keeps) u(n, keep) where u.keep = 0 and not u.n = any(v_needed));
    delete from crore.jobs where n = any(v_gone);
    delete from crore.records where n = any(v_gone);
    delete from crore.notes where n = any(v_gone);
  end if;
  for e in select u.n, u.line from unnest(p_jobs, p_lines) with ordinality u(n, line, place) where u.line is not null and v_applied[u.place]
      and not u.n = any(coalesce(v_gone, '{}')) loop
    perform crore.append_attempt(e.n, e.line);
  end loop;
  if (select watched > v_now from crore.queues where n = v_queue) then
    insert into crore.events (queue, type, id, at, info) select v_queue, 'done', id, v_now, '' from unnest(v_ids) id;
    perform crore.signal(v_queue, 'e');
  end if;
  perform crore.bump(v_queue, active => -cardinality(v_jobs), done => v_kept);
  if v_groups is not null or cardinality(v_events) > 0 then
    perform crore.finish_settling(v_queue, v_now, coalesce(v_groups, '{}'), '{}', v_events);
  end if;
  if exists (select 1 from crore.edges where up = any(v_jobs)) or exists (select 1 from crore.needed where down = any(v_jobs)) then
    perform crore.notify_dependents(case when v_cross then null else array[v_queue] end, v_now, v_jobs, v_ids,
      array_fill(4, array[cardinality(v_jobs)]));
  end if;
  if v_kept > 0 then perform crore.drop_oldest(v_queue, 4, (select max(k) from unnest(v_keeps) k), v_count, v_now); end if;
  if v_groups is not null or 'closed' = any(v_events) or (select limits is not null from crore.queues q where q.n = v_queue) then perform crore.wake(v_queue); end if;
  return v_applied;
end $$;
