-- The common cases of settle, with a few statements for all.

-- Jobs that are done, without a unique key and not the jobs of batches. Arrays of the same length: numbers, own parts of the tokens, attempts and ids of the
-- leases, results (text or null) and lines of the history (or null). `p_forget`: some are not kept.
create function crore.done(
  p_now bigint, p_cross boolean, p_name text, p_jobs bigint[], p_tokens text[], p_attempts int[], p_ids text[], p_results text[], p_lines text[],
  p_forget boolean
) returns boolean[] language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_cross boolean := p_cross or crore.any_far() and crore.concerns_others(p_jobs);
  v_queue int;
  v_applied boolean[];
  v_rows boolean[];
  g record;
begin
  if v_cross then perform crore.lock_all_queues(); end if;
  v_queue := crore.enter(p_name);
  if v_queue is null then return array_fill(false, array[cardinality(p_jobs)]); end if;
  v_applied := array_fill(false, array[cardinality(p_jobs)]);
  if p_lines is null then v_applied := crore.done_leases(v_queue, v_now, p_jobs, p_tokens, p_ids, p_results, p_forget); end if;
  if v_applied is null then return array_fill(true, array[cardinality(p_jobs)]); end if;
  select array_agg(u.place order by u.place) as places, array_agg(u.n order by u.place) as jobs, array_agg(u.token order by u.place) as tokens,
      array_agg(u.attempt order by u.place) as attempts, array_agg(u.id order by u.place) as ids, array_agg(u.result order by u.place) as results,
      array_agg(u.line order by u.place) as lines
    into g from unnest(p_jobs, p_tokens, p_attempts, p_ids, p_results, p_lines) with ordinality u(n, token, attempt, id, result, line, place)
    where not v_applied[u.place];
  perform crore.split_leases(v_queue, g.jobs);
  v_rows := crore.done_rows(v_queue, v_now, v_cross, g.jobs, g.tokens, g.attempts, g.ids, g.results, case when p_lines is not null then g.lines end);
  for i in 1 .. cardinality(v_rows) loop
    v_applied[g.places[i]] := v_rows[i];
  end loop;
  return v_applied;
end $$;

create function crore.is_forgotten(p_traits jsonb) returns boolean language sql immutable as $$
  select p_traits is not null and crore.keep_count(p_traits, 4) * crore.keep_ms(p_traits, 4) = 0 and not p_traits ? 'window'
$$;

-- The jobs of a lease from one number to another are done, and no others in between: ends them by one scan, if they have the same options. `p_ids` and
-- `p_results` are in the order of the numbers. Returns false, and changes nothing, if that is not so; `kept` is how long they are kept, 0 if not at all, and `most` how many.
create function crore.done_range(
  p_queue int, p_now bigint, p_jobs bigint[], p_ids text[], p_results text[], p_ran text, out ended boolean, out kept bigint, out most bigint
) language plpgsql as $$
declare
  v_traits jsonb := (select crore.traits(r.spec, r.traits) from crore.record_at(p_queue, p_jobs[1]) r);
  f record;
begin
  ended := false;
  if v_traits ? 'window' then return; end if;
  select array_agg(r.n) as jobs, array_agg(r.id) as ids, array_agg(r.size) as sizes, array_agg(r.ctid) as places,
      bool_and(r.traits is not distinct from v_traits) as alike
    into f from (select d.n, d.id::text, d.size, d.ctid, crore.traits(d.spec, d.traits) as traits from crore.records d
      where d.queue = p_queue and d.n >= p_jobs[1] and d.n <= p_jobs[cardinality(p_jobs)] order by d.n limit cardinality(p_jobs) + 1) r;
  if not f.alike or f.jobs is distinct from p_jobs or f.ids is distinct from p_ids then return; end if;
  ended := true;
  kept := case when crore.is_forgotten(v_traits) then 0 else crore.keep_ms(v_traits, 4) end;
  most := crore.keep_count(v_traits, 4);
  if kept = 0 then
    delete from crore.records where ctid = any(f.places);
  else
    insert into crore.jobs (n, queue, state, seq, attempt, size, at, until, ran, outcome)
      select u.n, p_queue, 4, u.n, 1, u.size, p_now, p_now + kept, p_ran, u.result from unnest(f.jobs, f.sizes, p_results) u(n, size, result);
  end if;
end $$;

-- Those that have no row: see lib/leases.sql. Returns which they are, null if all.
create function crore.done_leases(
  p_queue int, p_now bigint, p_jobs bigint[], p_tokens text[], p_ids text[], p_results text[], p_forget boolean
) returns boolean[] language plpgsql as $$
declare
  v_applied boolean[] := array_fill(false, array[cardinality(p_jobs)]);
  v_places bigint[] := '{}';
  v_gone bigint[];
  v_kept bigint[];
  v_least bigint;
  v_ms bigint;
  v_most bigint;
  v_longest bigint := 0;
  v_count bigint := 0;
  c crore.counters := crore.counts(p_queue);
  v_together boolean;
  l record;
begin
  if c.awaited > 0 or (select q.breaker is not null or q.watched > p_now or q.limits is not null from crore.queues q where q.n = p_queue) then
    return v_applied;
  end if;
  for l in select h.first, h.split, h.at || ' ' || h.worker as ran, u.token, u.count, u.left_end, u.right_end from (
        select t.token, min(t.n) as low, max(t.n) as high, count(*), min(t.place)::int as left_end, max(t.place)::int as right_end
          from unnest(p_jobs, p_tokens) with ordinality t(n, token, place) where t.n < crore.first_row() group by t.token) u
      cross join lateral crore.lease_of(p_queue, u.low) h where h.token = u.token and u.high <= h.last loop
    v_gone := '{}';
    v_kept := '{}';
    v_together := false;
    if not l.split and l.count > 1 and l.right_end - l.left_end + 1 = l.count then
      select r.ended, r.kept, r.most into v_together, v_ms, v_most from crore.done_range(p_queue, p_now, p_jobs[l.left_end:l.right_end],
        p_ids[l.left_end:l.right_end], p_results[l.left_end:l.right_end], l.ran) r;
    end if;
    if v_together then
      v_least := v_ms;
      v_gone := array(select generate_series(l.left_end, l.right_end));
      if v_ms > 0 then v_kept := v_gone; end if;
    elsif p_forget then
      with picked as materialized (
        select r.ctid, g.place from unnest(p_jobs, p_tokens, p_ids) with ordinality g(n, token, id, place)
          cross join lateral (select d.ctid, d.id, crore.traits(d.spec, d.traits) as traits from crore.records d where d.queue = p_queue and d.n >= g.n and d.n <= g.n order by d.n limit 1) r
          where g.token = l.token and r.id = g.id and crore.is_forgotten(r.traits) and (not l.split or not exists (select 1 from crore.jobs j where j.n = g.n))
      ), gone as (
        delete from crore.records where ctid = any(array(select ctid from picked))
      ) select coalesce(array_agg(place), '{}') into v_gone from picked;
    end if;
    if not v_together and cardinality(v_gone) < l.count then
      with picked as materialized (
        select r.n, r.size, g.result, g.place, crore.keep_ms(t.traits, 4) as ms, crore.keep_count(t.traits, 4) as most
          from unnest(p_jobs, p_tokens, p_ids, p_results) with ordinality g(n, token, id, result, place)
          cross join lateral crore.record_at(p_queue, g.n) r cross join lateral (select crore.traits(r.spec, r.traits) as traits) t
          where g.token = l.token and r.id = g.id and (t.traits is null or not t.traits ? 'window' and crore.keep_ms(t.traits, 4) > 0 and crore.keep_count(t.traits, 4) > 0)
            and (not l.split or not exists (select 1 from crore.jobs j where j.n = g.n))
      ), kept as (
        insert into crore.jobs (n, queue, state, seq, attempt, size, at, until, ran, outcome)
          select n, p_queue, 4, n, 1, size, p_now, p_now + ms, l.ran, result from picked
      ) select coalesce(array_agg(place), '{}'), min(ms), max(ms), max(most) into v_kept, v_least, v_ms, v_most from picked;
    end if;
    if not v_together then v_gone := v_gone || v_kept; end if;
    continue when cardinality(v_gone) = 0;
    v_places := v_places || v_gone;
    if cardinality(v_kept) > 0 then
      c.done_from := case when c.done = 0 then p_now + v_least else least(c.done_from, p_now + v_least) end;
      c.done := c.done + cardinality(v_kept);
      v_count := greatest(v_count, v_most);
      v_longest := greatest(v_longest, v_ms);
    end if;
    perform crore.shrink_lease(p_queue, l.first, cardinality(v_gone), false);
  end loop;
  if cardinality(v_places) = 0 then return v_applied; end if;
  c.active := c.active - cardinality(v_places);
  perform crore.save(c);
  if v_count > 0 and c.done > v_count then perform crore.drop_oldest(p_queue, 4, v_longest, v_count, p_now); end if;
  if cardinality(v_places) = cardinality(p_jobs) then return null; end if;
  for i in 1 .. cardinality(v_places) loop
    v_applied[v_places[i]] := true;
  end loop;
  return v_applied;
end $$;

-- Those that have a row. `p_cross`: all queues are locked.
create function crore.done_rows(
  p_queue int, p_now bigint, p_cross boolean, p_jobs bigint[], p_tokens text[], p_attempts int[], p_ids text[], p_results text[], p_lines text[]
) returns boolean[] language plpgsql as $$
declare
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
  -- How long each is kept: 0 is not at all.
  select array_agg(f.place), array_agg(f.n), array_agg(f.id), array_agg(f.result), array_agg(f.grp) filter (where f.grp is not null), array_agg(f.keep),
      count(*) filter (where f.keep > 0), max(f.count) filter (where f.keep > 0), bool_or(f.linked), bool_or(f.special),
      min(f.keep) filter (where f.keep > 0), max(f.keep)
    into v_places, v_jobs, v_ids, v_results, v_groups, v_keeps, v_kept, v_count, v_linked, v_special, v_least, v_most
    from (select g.place, j.n, r.id, g.result, j.grp, j.linked, t.traits ? 'window' as special,
        crore.keep_count(t.traits, 4) as count, case when crore.keep_count(t.traits, 4) > 0 then crore.keep_ms(t.traits, 4) else 0 end as keep
      from unnest(p_jobs, p_tokens, p_attempts, p_ids, p_results) with ordinality g(n, token, attempt, id, result, place)
      cross join lateral crore.row_at(g.n) j cross join lateral crore.record_at(p_queue, j.n) r
      cross join lateral (select crore.traits(r.spec, r.traits) as traits) t
      where j.queue = p_queue and j.token = g.token and j.attempt = g.attempt and r.id = g.id) f;
  if v_jobs is null then return v_applied; end if;
  select k.breaker is not null as breaker, k.limits is not null as limits, k.watched > p_now as watched into q from crore.queues k where k.n = p_queue;
  c := crore.counts(p_queue);
  for i in 1 .. cardinality(v_places) loop
    v_applied[v_places[i]] := true;
    if q.breaker then v_events := v_events || crore.count_outcome(p_queue, p_now, p_tokens[v_places[i]], true); end if;
  end loop;
  if c.awaited > 0 then
    for i in 1 .. cardinality(v_jobs) loop
      perform crore.keep_awaited(p_queue, p_now, v_jobs[i], v_ids[i]);
    end loop;
  end if;
  if v_linked or c.awaited > 0 then
    v_needed := array(select u.n from unnest(v_jobs) u(n) where exists (select 1 from crore.needed d where d.up = u.n));
  end if;
  if v_kept + cardinality(v_needed) > 0 then
    update crore.jobs j set state = 4, ran = j.at || ' ' || j.worker, at = p_now, worker = null, token = null, outcome = u.result,
        until = case when u.keep > 0 then p_now + u.keep else crore.hidden() end
      from unnest(v_jobs, v_results, v_keeps, crore.row_places(v_jobs)) u(n, result, keep, place)
      where j.ctid = u.place and (u.keep > 0 or u.n = any(v_needed));
  end if;
  if v_special then
    insert into crore.ended_ids (queue, id, until) select p_queue, d.id, p_now + (t.traits->>'window')::bigint
      from unnest(v_jobs) u(n) cross join lateral crore.record_at(p_queue, u.n) d cross join lateral (select crore.traits(d.spec, d.traits) as traits) t
      where t.traits ? 'window' on conflict (queue, id) do update set until = excluded.until;
  end if;
  if v_kept + cardinality(v_needed) < cardinality(v_jobs) then
    v_gone := case when v_kept + cardinality(v_needed) = 0 then v_jobs
      else array(select u.n from unnest(v_jobs, v_keeps) u(n, keep) where u.keep = 0 and not u.n = any(v_needed)) end;
    delete from crore.jobs where n = any(v_gone);
    delete from crore.records where ctid = any(crore.places(p_queue, v_gone));
    delete from crore.notes where n = any(v_gone);
  end if;
  if p_lines is not null then
    for e in select u.n, u.line from unnest(p_jobs, p_lines) with ordinality u(n, line, place) where u.line is not null and v_applied[u.place]
        and not u.n = any(coalesce(v_gone, '{}')) loop
      perform crore.append_attempt(e.n, e.line);
    end loop;
  end if;
  if q.watched then
    insert into crore.events (queue, type, id, at, info) select p_queue, 'done', id, p_now, '' from unnest(v_ids) id;
    perform crore.signal(p_queue, 'e');
  end if;
  perform crore.bump(p_queue, active => -cardinality(v_jobs), done => v_kept, done_from => p_now + v_least);
  if (v_groups is not null and q.limits) or cardinality(v_events) > 0 then
    perform crore.finish_settling(p_queue, p_now, coalesce(v_groups, '{}'), '{}', v_events);
  end if;
  if v_linked then
    perform crore.notify_dependents(case when p_cross then null else array[p_queue] end, p_now, v_jobs, v_ids,
      array_fill(4, array[cardinality(v_jobs)]));
  end if;
  if v_kept > 0 and c.done + v_kept > v_count then perform crore.drop_oldest(p_queue, 4, v_most, v_count, p_now); end if;
  if 'closed' = any(v_events) or q.limits then perform crore.wake(p_queue); end if;
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
  v_gone := crore.remove_leased(v_queue, p_tasks, p_tokens);
  if cardinality(v_gone) = 0 then return array_fill(false, array[cardinality(p_tasks)]); end if;
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
