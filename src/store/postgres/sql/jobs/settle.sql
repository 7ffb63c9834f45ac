-- Ending leases.

-- settle. An entry of p_list: n, token (the part in the row), claim (its number) and, for a job, id and leased (the attempt of the lease); to (the new state),
-- attempt, crashes; result or result_bytes (base64), error, delay, children (as stored) and needs (of a job that waits for its children); line (of the
-- history of attempts); record (the job that a raw task becomes). Returns whether each was applied.
create function crore.settle(p_now bigint, p_cross boolean, p_name text, p_list jsonb) returns boolean[] language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_jobs bigint[] := array(select (e->>'n')::bigint from jsonb_array_elements(p_list) e where e ? 'id');
  v_cross boolean := p_cross or crore.concerns_others(v_jobs) or exists (select 1 from jsonb_array_elements(p_list) e
    cross join lateral jsonb_array_elements(coalesce(e->'needs', '[]')) c where c->>'queue' <> p_name);
  v_queue int;
  v_locked int[];
  v_applied boolean[] := '{}';
  v_groups text[] := '{}';
  v_fronts jsonb[] := '{}';
  v_ended bigint[] := '{}';
  v_ids text[] := '{}';
  v_states int[] := '{}';
  v_returned int := 0;
  v_woken boolean := false;
  v_events text[] := '{}';
  e jsonb;
  j record;
  r record;
begin
  if v_cross then perform crore.lock_all_queues(); end if;
  v_queue := crore.enter(p_name);
  if v_queue is null then return array_fill(false, array[jsonb_array_length(p_list)]); end if;
  v_locked := case when v_cross then null else array[v_queue] end;
  perform crore.split_leases(v_queue, v_jobs);
  perform crore.split_task_leases(v_queue, array(select (x->>'n')::bigint from jsonb_array_elements(p_list) x where not x ? 'id'));
  for e in select * from jsonb_array_elements(p_list) loop
    if e ? 'id' then
      select k.n, k.seq, k.size, k.grp, d.id, false as task into j
        from crore.row_at((e->>'n')::bigint) k cross join lateral crore.record_at(v_queue, k.n) d where k.queue = v_queue and k.token = e->>'token' and k.attempt = (e->>'leased')::int and d.id = e->>'id';
    else
      select t.n, t.seq, length(t.body) as size, null::text as grp, null::text as id, true as task into j from crore.tasks t
        where t.queue = v_queue and t.n = (e->>'n')::bigint and t.token = e->>'token';
    end if;
    if not found then
      v_applied := v_applied || false;
      continue;
    end if;
    v_applied := v_applied || true;
    perform crore.bump(v_queue, active => -1);
    v_events := v_events || crore.count_outcome(v_queue, v_now, e->>'token', case when e->>'to' = 'done' then true
      when e->>'to' = 'dead' or (e->>'to' = 'scheduled' and e ? 'error') then false end);
    if j.grp is not null then v_groups := v_groups || j.grp; end if;
    if j.task then
      if e->>'to' = 'ready' and not e ? 'record' then
        -- Its place is given at the end.
        update crore.tasks set worker = null, token = null where queue = v_queue and n = j.n;
        update crore.task_locks l set task = null where l.queue = v_queue and l.task = j.n;
        perform crore.bump(v_queue, tasks => 1, ready => 1, bytes => j.size, placed => true);
        v_fronts := v_fronts || jsonb_build_object('n', j.n, 'claim', e->'claim', 'seq', j.seq, 'task', true);
        v_returned := v_returned + 1;
        continue;
      end if;
      delete from crore.task_locks l where l.queue = v_queue and l.task = j.n;
      delete from crore.tasks where queue = v_queue and n = j.n;
      continue when not e ? 'record';
      -- The first failure of a raw task: it becomes a job, as if this lease had always been that of the job.
      select crore.insert_job(v_queue, e->'record', 2, v_now, v_now) as n, j.seq, j.size, null::text as grp, e->'record'->>'id' as id, true as task into j;
    end if;
    perform crore.event(v_queue, v_now, e->>'event', j.id, e->>'error');
    if e ? 'line' then perform crore.append_attempt(j.n, e->>'line'); end if;
    case e->>'to'
      when 'scheduled' then
        update crore.jobs set state = 1, attempt = (e->>'attempt')::int, crashes = (e->>'crashes')::int, at = v_now + (e->>'delay')::bigint,
          until = null, outcome = e->>'stored', worker = null, token = null where n = j.n;
        perform crore.hold_group(v_queue, j.grp, j.n);
        perform crore.bump(v_queue, scheduled => 1, bytes => j.size, due => v_now + (e->>'delay')::bigint);
        v_woken := true;
      when 'ready' then
        update crore.jobs set state = 2, attempt = (e->>'attempt')::int, crashes = (e->>'crashes')::int, at = null, ran = null, until = null,
          outcome = e->>'error', worker = null, token = null where n = j.n;
        perform crore.bump(v_queue, ready => 1, bytes => j.size, placed => true);
        v_fronts := v_fronts || jsonb_build_object('n', j.n, 'claim', e->'claim', 'seq', j.seq, 'grp', coalesce(j.grp, e->'record'->>'group'));
      when 'blocked' then
        perform crore.write_children(j.n, e->>'children');
        select * into r from crore.park(v_locked, v_queue, v_now, j.n, e);
        if r.failed is null then
          v_woken := true;
        else
          perform crore.close_job(v_queue, v_now, j.n, 5, (e->>'attempt')::int, (e->>'crashes')::int, r.failed);
          perform crore.event(v_queue, v_now, 'dead', j.id, r.failed);
          v_ended := v_ended || j.n;
          v_ids := v_ids || j.id;
          v_states := v_states || 5;
        end if;
      else
        v_ended := v_ended || j.n;
        v_ids := v_ids || j.id;
        v_states := v_states || case e->>'to' when 'done' then 4 when 'dead' then 5 else 6 end;
        perform crore.close_job(v_queue, v_now, j.n, v_states[cardinality(v_states)], (e->>'attempt')::int, (e->>'crashes')::int,
          coalesce(e->>'result', e->>'error'), decode(e->>'result_bytes', 'base64'));
    end case;
  end loop;
  perform crore.finish_settling(v_queue, v_now, v_groups, v_fronts, v_events);
  if v_returned > 0 then perform crore.task_event(v_queue, v_now, 'work', v_returned); end if;
  if cardinality(v_ended) > 0 then perform crore.notify_dependents(v_locked, v_now, v_ended, v_ids, v_states); end if;
  for r in select s.state, max(k.ms) as ms, max(k.count) as count
      from (select (case x->>'to' when 'done' then 4 when 'dead' then 5 else 6 end) as state, coalesce(x->'traits', crore.traits(x->'record'->>'spec', x->'record'->'traits')) as traits
            from jsonb_array_elements(p_list) with ordinality y(x, place)
            where v_applied[place] and x->>'to' in ('done', 'dead', 'cancelled') and (x ? 'id' or x ? 'record')) s
      cross join lateral (select crore.keep_ms(s.traits, s.state) as ms, crore.keep_count(s.traits, s.state) as count) k
      where k.ms > 0 and k.count > 0 group by s.state loop
    perform crore.drop_oldest(v_queue, r.state, r.ms, r.count, v_now);
  end loop;
  if v_woken or cardinality(v_fronts) > 0 or 'closed' = any(v_events) or (select limits is not null from crore.queues q where q.n = v_queue) then
    perform crore.wake(v_queue);
  end if;
  return v_applied;
end $$;

-- Releases groups, records what happened to the breaker, and puts returned entries to the front: the lowest claim goes to the very front, so it is moved last.
create function crore.finish_settling(p_queue int, p_now bigint, p_groups text[], p_fronts jsonb[], p_events text[]) returns void language plpgsql as $$
declare
  r record;
  v_seq bigint;
  v_priority int;
begin
  if cardinality(p_groups) > 0 then
    perform crore.release_groups(p_queue, array_agg(e.name), array_agg(e.count), p_now) from (select g as name, count(*)::int as count
      from unnest(p_groups) with ordinality u(g, place) group by g order by min(place)) e;
  end if;
  perform crore.breaker_events(p_queue, p_now, p_events);
  for r in select (f->>'n')::bigint as n, f ? 'task' as task, f->>'grp' as grp from unnest(p_fronts) f
      order by (f->>'claim')::bigint desc, (f->>'seq')::bigint desc loop
    if r.task then
      update crore.tasks set seq = -nextval('crore.fronts') where queue = p_queue and n = r.n returning seq into v_seq;
      perform crore.list_task(p_queue, v_seq);
    else
      update crore.jobs set seq = -nextval('crore.fronts') where n = r.n returning seq, priority into v_seq, v_priority;
      perform crore.list_job(p_queue, v_priority, r.grp, v_seq);
      perform crore.hold_group(p_queue, r.grp, r.n);
      if r.grp is not null then perform crore.enter_group(p_queue, r.grp, p_now, r.n); end if;
    end if;
  end loop;
end $$;

-- Makes an active job wait for its children; if all have ended, it goes to the back of its queue. If one that must succeed has not, nothing is changed and
-- the reason is returned.
create function crore.park(p_locked int[], p_queue int, p_now bigint, p_job bigint, p_entry jsonb, out failed text) language plpgsql as $$
declare
  j record;
  w record;
begin
  perform crore.reach(p_locked, q.n) from crore.queues q
    where q.name in (select c->>'queue' from jsonb_array_elements(p_entry->'needs') c) and q.n <> p_queue;
  select * into w from crore.connect(p_queue, p_job, p_entry->'needs', true);
  failed := w.failed;
  if failed is not null then return; end if;
  perform crore.hold_group(p_queue, (select grp from crore.jobs where n = p_job), p_job);
  update crore.jobs set state = case when w.waits then 0 else 2 end, attempt = (p_entry->>'attempt')::int, crashes = (p_entry->>'crashes')::int,
    at = case when w.waits then p_now end, seq = case when w.waits then 0 else nextval('crore.backs') end,
    ran = case when w.waits then null else p_now end, until = null, outcome = null, outcome_bytes = null, worker = null, token = null
    where n = p_job returning grp, size, priority, seq into j;
  perform crore.bump(p_queue, blocked => w.waits::int, ready => (not w.waits)::int, bytes => j.size, placed => true);
  if not w.waits then perform crore.list_job(p_queue, j.priority, j.grp, j.seq); end if;
  if not w.waits and j.grp is not null then perform crore.enter_group(p_queue, j.grp, p_now, p_job); end if;
end $$;
