-- Leases of fresh tasks: one row for all tasks of a claim, see tables/tasks.sql. With a row for each, a task was written twice and was in three indexes.

-- The lease of a task whose row says nothing about one.
create function crore.task_lease_of(p_queue int, p_task bigint) returns setof crore.task_leases language sql stable as $$
  select l.* from (select * from crore.task_leases where queue = p_queue and first <= p_task order by first desc limit 1) l where l.last >= p_task
$$;

-- The tasks of a lease from one number to another, at most so many. Not in SQL: a function that cannot be inlined is planned again for each call, 70 µs here.
create function crore.leased_range(p_queue int, p_low bigint, p_high bigint, p_limit bigint, out tasks bigint[], out places tid[]) language plpgsql as $$
begin
  select array_agg(t.n), array_agg(t.place) into leased_range.tasks, leased_range.places from (select n, ctid as place from crore.tasks
    where queue = p_queue and n >= p_low and n <= p_high and worker is null and (seq < 0) is not true order by n limit p_limit) t;
end $$;

-- So many tasks of a lease have ended, or have their own worker and token now.
create function crore.shrink_task_lease(p_queue int, p_first bigint, p_by int) returns void language plpgsql as $$
begin
  delete from crore.task_leases where queue = p_queue and first = p_first and left_over = p_by;
  if found then return; end if;
  update crore.task_leases set left_over = left_over - p_by where queue = p_queue and first = p_first;
end $$;

-- Gives these tasks a worker and a token of their own, as far as they are leased by such a row.
create function crore.split_task_leases(p_queue int, p_tasks bigint[]) returns void language plpgsql as $$
declare
  r record;
begin
  for r in with made as (
      update crore.tasks t set worker = f.worker, token = f.token, seq = t.n from (
          select u.n, l.first, l.worker, l.token, s.place from (select distinct n from unnest(p_tasks) n) u
            cross join lateral crore.task_lease_of(p_queue, u.n) l
            cross join lateral (select unnest(h.places) as place from crore.leased_range(p_queue, u.n, u.n, 1) h) s) f
        where t.ctid = f.place returning f.first
    ) select m.first, count(*)::int as count from made m group by m.first loop
    perform crore.shrink_task_lease(p_queue, r.first, r.count);
  end loop;
end $$;

-- The same for all tasks of a worker.
create function crore.split_task_leases_by(p_queue int, p_worker text) returns void language plpgsql as $$
begin
  perform crore.split_task_leases(p_queue, h.tasks) from crore.task_leases l cross join lateral crore.leased_range(p_queue, l.first, l.last, null) h
    where l.queue = p_queue and l.worker = p_worker and h.tasks is not null;
end $$;

-- Leases the tasks that have waited longest, those that have returned first; returns their numbers and the counters, which the caller saves.
create function crore.lease_tasks(inout c crore.counters, p_worker text, p_token text, p_limit bigint, out tasks bigint[]) language plpgsql as $$
declare
  v_places tid[];
  v_sizes bigint;
  v_last bigint;
  r record;
begin
  tasks := '{}';
  if p_limit <= 0 or c.tasks = 0 then return; end if;
  if c.task_front < 0 then
    select coalesce(array_agg(f.n), '{}'), array_agg(f.place), max(f.seq), coalesce(sum(f.size), 0) into tasks, v_places, v_last, v_sizes from (
      select n, ctid as place, seq, length(body) as size from crore.tasks where queue = c.queue and worker is null and seq >= c.task_front and seq < 0
        order by seq limit p_limit) f;
    update crore.tasks t set worker = p_worker, token = p_token where t.ctid = any(v_places);
    c.task_front := case when cardinality(tasks) < p_limit then 0 else v_last + 1 end;
    c.bytes := c.bytes - v_sizes;
  end if;
  if cardinality(tasks) < p_limit then
    select array_agg(f.n) as tasks, sum(f.size) as bytes into r from (select n, length(body) as size from crore.tasks
      where queue = c.queue and n >= c.task_back order by n limit p_limit - cardinality(lease_tasks.tasks)) f;
    if r.tasks is not null then
      v_last := r.tasks[cardinality(r.tasks)];
      insert into crore.task_leases (queue, first, last, left_over, worker, token)
        values (c.queue, r.tasks[1], v_last, cardinality(r.tasks), p_worker, p_token);
      c.task_back := v_last + 1;
      c.bytes := c.bytes - r.bytes;
      tasks := tasks || r.tasks;
    end if;
  end if;
  c.tasks := c.tasks - cardinality(tasks);
  if exists (select 1 from crore.task_locks where queue = c.queue) then
    for r in select u.n, sha256(t.body) as hash from unnest(tasks) with ordinality u(n, place) cross join lateral crore.task_at(c.queue, u.n) t order by u.place loop
      update crore.task_locks set task = r.n where queue = c.queue and hash = r.hash and task is null;
    end loop;
  end if;
end $$;

create function crore.task_at(p_queue int, p_task bigint) returns setof crore.tasks language sql stable as $$
  select * from crore.tasks where queue = p_queue and n >= p_task and n <= p_task order by n limit 1
$$;

-- Removes those of these tasks whose lease has this token; returns their numbers. `p_tasks` and `p_tokens` have the same length.
create function crore.remove_leased(p_queue int, p_tasks bigint[], p_tokens text[]) returns bigint[] language plpgsql as $$
declare
  v_gone bigint[] := '{}';
  v_places tid[];
  v_more bigint[];
  l record;
begin
  for l in select h.first, u.tasks, u.count from (
        select t.token, array_agg(t.n order by t.n) as tasks, count(*)::int as count from unnest(p_tasks, p_tokens) t(n, token) group by t.token) u
      cross join lateral crore.task_lease_of(p_queue, u.tasks[1]) h where h.token = u.token and u.tasks[u.count] <= h.last loop
    select r.tasks, r.places into v_more, v_places from crore.leased_range(p_queue, l.tasks[1], l.tasks[l.count], l.count + 1) r;
    if v_more is distinct from l.tasks then
      select array_agg(t.n), array_agg(t.place) into v_more, v_places from unnest(l.tasks) u(n)
        cross join lateral (select r.tasks[1] as n, r.places[1] as place from crore.leased_range(p_queue, u.n, u.n, 1) r where r.tasks is not null) t;
      continue when v_more is null;
    end if;
    delete from crore.tasks where ctid = any(v_places);
    perform crore.shrink_task_lease(p_queue, l.first, cardinality(v_more));
    v_gone := v_gone || v_more;
  end loop;
  if cardinality(v_gone) = cardinality(p_tasks) then return v_gone; end if;
  with gone as (
    delete from crore.tasks where ctid = any(array(select t.place from unnest(p_tasks, p_tokens) g(n, token)
      cross join lateral (select ctid as place, k.token from crore.tasks k where k.queue = p_queue and k.n >= g.n and k.n <= g.n order by k.n limit 1) t
      where t.token = g.token)) returning n
  ) select v_gone || coalesce(array_agg(n), '{}') into v_gone from gone;
  return v_gone;
end $$;
