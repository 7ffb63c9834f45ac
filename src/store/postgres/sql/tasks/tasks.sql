-- Raw tasks. Many tasks are given as one value and their lengths.

create function crore.split_tasks(p_bytes bytea, p_lengths int[]) returns table (place bigint, body bytea) language sql immutable as $$
  select place, substring(p_bytes from (ends - length + 1)::int for length)
  from (select place, length, sum(length) over (order by place) as ends from unnest(p_lengths) with ordinality u(length, place)) p order by place
$$;

-- Adds tasks at the back of a locked queue; returns its counters, which the caller saves.
create function crore.append_tasks(c crore.counters, p_bytes bytea, p_lengths int[], p_quiet boolean default false) returns crore.counters language plpgsql as $$
declare
  v_first bigint;
begin
  if cardinality(p_lengths) = 0 then return c; end if;
  with added as (insert into crore.tasks (queue, body) select c.queue, t.body from crore.split_tasks(p_bytes, p_lengths) t returning n)
    select min(n) into v_first from added;
  if c.tasks = 0 then
    c.task_front := 0;
    c.task_back := v_first;
  end if;
  c.tasks := c.tasks + cardinality(p_lengths);
  c.ready := c.ready + cardinality(p_lengths);
  c.bytes := c.bytes + length(p_bytes);
  if c.hungry and not p_quiet then
    c.hungry := false;
    perform crore.signal(c.queue, 'w');
  end if;
  return c;
end $$;

-- A task has returned to this place at the front.
create function crore.list_task(p_queue int, p_seq bigint) returns void language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
begin
  if c.task_front <= p_seq then return; end if;
  c.task_front := p_seq;
  perform crore.save(c);
end $$;

-- push: all or none. p_most, p_max_bytes: limits of the queue, or null. `p_quiet`: the caller signals work.
create function crore.push(p_now bigint, p_name text, p_bytes bytea, p_lengths int[], p_most bigint, p_max_bytes bigint, p_quiet boolean default false)
returns boolean language plpgsql as $$
declare
  v_queue int := crore.ensure(p_name);
  c crore.counters;
begin
  if not crore.has_room(v_queue, cardinality(p_lengths), length(p_bytes), p_most, p_max_bytes) then return false; end if;
  c := crore.append_tasks(crore.counts(v_queue), p_bytes, p_lengths, p_quiet);
  perform crore.save(c);
  perform crore.task_event(v_queue, crore.time(p_now), 'work', cardinality(p_lengths));
  return true;
end $$;

-- enqueue. p_sizes: the number of tasks of each group, p_unique: whether its tasks are unique.
create function crore.enqueue_tasks(p_now bigint, p_name text, p_bytes bytea, p_lengths int[], p_sizes int[], p_unique boolean[]) returns boolean[]
language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_queue int := crore.ensure(p_name);
  v_accepted boolean[] := '{}';
  v_task int := 1;
  v_byte int := 1;
  v_lengths int[];
  v_length bigint;
  v_bytes bytea;
  c crore.counters := crore.counts(v_queue);
begin
  for i in 1 .. cardinality(p_sizes) loop
    v_lengths := p_lengths[v_task : v_task + p_sizes[i] - 1];
    select coalesce(sum(l), 0) into v_length from unnest(v_lengths) l;
    v_bytes := substring(p_bytes from v_byte for v_length::int);
    v_task := v_task + p_sizes[i];
    v_byte := v_byte + v_length::int;
    if p_unique[i] then
      begin
        insert into crore.task_locks (queue, hash) select v_queue, sha256(t.body) from crore.split_tasks(v_bytes, v_lengths) t;
      exception when unique_violation then
        v_accepted := v_accepted || false;
        continue;
      end;
    end if;
    if p_sizes[i] > 0 then
      c := crore.append_tasks(c, v_bytes, v_lengths);
      perform crore.task_event(v_queue, v_now, 'work', p_sizes[i]);
    end if;
    v_accepted := v_accepted || true;
  end loop;
  perform crore.save(c);
  return v_accepted;
end $$;

-- claim. The first row has the status and the common part of the tokens.
create function crore.claim_tasks(p_now bigint, p_name text, p_worker text, p_lease bigint, p_want int, p_nonce text)
returns table (status text, token text, n bigint, task bytea) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := crore.time(p_now);
  v_queue int := crore.ensure(p_name);
  c crore.counters := crore.counts(v_queue);
  v_token text := c.claims || '.' || p_nonce;
  v_tasks bigint[];
  l record;
  t record;
begin
  if not crore.renew_session(p_now, v_queue, p_worker, p_lease) then
    return query select 'lost', '', null::bigint, null::bytea;
    return;
  end if;
  if (select paused from crore.queues q where q.n = v_queue) then
    return query select 'paused', '', null::bigint, null::bytea;
    return;
  end if;
  select * into l from crore.room_within_limits(v_queue, p_want, v_now);
  select * into t from crore.lease_tasks(crore.counts(v_queue), p_worker, v_token, l.room);
  v_tasks := t.tasks;
  if cardinality(v_tasks) > 0 then
    perform crore.save(t.c);
    perform crore.bump(v_queue, claims => cardinality(v_tasks), ready => -cardinality(v_tasks), active => cardinality(v_tasks),
      opened => l.window_opened, started => l.window_started + cardinality(v_tasks));
  end if;
  return query select 'ok', v_token, null::bigint, null::bytea;
  return query select null, null, k.n, k.body from unnest(v_tasks) with ordinality u(n, place) cross join lateral crore.task_at(v_queue, u.n) k order by u.place;
end $$;

-- finish. Tokens as numbers of rows and their own part; p_results may contain nulls.
create function crore.finish_tasks(p_now bigint, p_name text, p_tasks bigint[], p_tokens text[], p_given text[], p_results text[]) returns boolean[]
language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_queue int := crore.ensure(p_name);
  v_applied boolean[] := '{}';
  v_ended int := 0;
  t record;
begin
  perform crore.split_task_leases(v_queue, p_tasks);
  for i in 1 .. cardinality(p_tasks) loop
    delete from crore.tasks k where k.queue = v_queue and k.n = p_tasks[i] and k.token = p_tokens[i] returning k.n, k.worker, k.body into t;
    v_applied := v_applied || found;
    continue when not found;
    v_ended := v_ended + 1;
    delete from crore.task_locks l where l.queue = v_queue and l.task = t.n;
    perform crore.task_event(v_queue, v_now, 'done', null, t.worker, p_given[i], t.body, p_results[i]);
  end loop;
  if v_ended > 0 then perform crore.bump(v_queue, active => -v_ended); end if;
  -- With a concurrency limit, an ended task lets another one start.
  if (select limits is not null from crore.queues q where q.n = v_queue) and (crore.counts(v_queue)).tasks > 0 then
    perform crore.task_event(v_queue, v_now, 'work', 1);
    perform crore.wake(v_queue);
  end if;
  return v_applied;
end $$;

-- remove: waiting tasks that equal this one; returns how many.
create function crore.remove_tasks(p_now bigint, p_name text, p_task bytea) returns bigint language plpgsql as $$
declare
  v_queue int := crore.ensure(p_name);
  v_back bigint := (crore.counts(v_queue)).task_back;
  v_count bigint;
begin
  delete from crore.tasks where queue = v_queue and worker is null and (n >= v_back or seq < 0) and body = p_task;
  get diagnostics v_count = row_count;
  if v_count > 0 then perform crore.bump(v_queue, tasks => -v_count, ready => -v_count, bytes => -v_count * length(p_task)); end if;
  delete from crore.task_locks where queue = v_queue and hash = sha256(p_task) and task is null;
  perform crore.task_event(v_queue, crore.time(p_now), 'cancel', p_task => p_task);
  return v_count;
end $$;

create function crore.clear_tasks(p_now bigint, p_name text) returns void language plpgsql as $$
declare
  v_queue int := crore.ensure(p_name);
  v_back bigint := (crore.counts(v_queue)).task_back;
  v_count bigint;
  v_bytes bigint;
begin
  with gone as (delete from crore.tasks where queue = v_queue and worker is null and (n >= v_back or seq < 0) returning length(body) as size)
    select count(*), coalesce(sum(size), 0) into v_count, v_bytes from gone;
  if v_count > 0 then perform crore.bump(v_queue, tasks => -v_count, ready => -v_count, bytes => -v_bytes); end if;
  delete from crore.task_locks where queue = v_queue and task is null;
  perform crore.task_event(v_queue, crore.time(p_now), 'delete');
end $$;

-- Announces for a minute that somebody reads the task events of a queue; returns the position from which it has to read.
create function crore.read_news_of(p_name text, p_topic text) returns bigint language plpgsql as $$
begin
  insert into crore.news_readers (queue, topic, until) values (p_name, p_topic, clock_timestamp() + interval '1 minute')
    on conflict (queue, topic) do update set until = excluded.until;
  return coalesce((select max(w.n) from crore.news w join crore.queues q on q.n = w.queue where q.name = p_name), 0);
end $$;
