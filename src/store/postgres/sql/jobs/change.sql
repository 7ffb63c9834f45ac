-- Changes to jobs by their ids, without a token.

create function crore.numbers_of(p_name text, p_ids text[]) returns bigint[] language plpgsql as $$
begin
  perform crore.set_up();
  return array(select crore.found((select n from crore.queues where name = p_name), p_ids));
end $$;

-- cancel. p_line: a line of the history, if a person did it.
create function crore.cancel(p_now bigint, p_cross boolean, p_name text, p_ids text[], p_line text) returns boolean[] language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_cross boolean := p_cross or crore.concerns_others(crore.numbers_of(p_name, p_ids));
  v_queue int;
  v_applied boolean[] := '{}';
  v_ended bigint[] := '{}';
  v_ids text[] := '{}';
  v_freed boolean := false;
  v_id text;
  j record;
begin
  if v_cross then perform crore.lock_all_queues(); end if;
  v_queue := crore.enter(p_name);
  if v_queue is null then return array_fill(false, array[cardinality(p_ids)]); end if;
  perform crore.make_rows(v_queue, p_ids);
  foreach v_id in array p_ids loop
    select k.*, crore.traits(r.spec, r.traits) as traits into j from crore.record_named(v_queue, v_id) r cross join lateral crore.row_at(r.n) k where k.state < 4;
    v_applied := v_applied || found;
    continue when not found;
    perform crore.bump_state(v_queue, j.state, -1);
    if j.state = 3 then
      perform crore.signal(v_queue, 'c', j.attempt || '.' || j.n || '.' || j.token);
      v_freed := true;
      if j.grp is not null then perform crore.release_group(v_queue, j.grp, v_now); end if;
    else
      perform crore.bump(v_queue, bytes => -j.size);
      if j.state = 2 and j.grp is not null then perform crore.leave_group(v_queue, j.grp); end if;
      v_freed := crore.let_go(v_queue, j.grp, j.n, v_now) or v_freed;
      if j.state = 0 then delete from crore.edges where down = j.n and not member; end if;
    end if;
    if p_line is not null then perform crore.append_attempt(j.n, p_line); end if;
    perform crore.close_job(v_queue, v_now, j.n, 6, j.attempt, j.crashes, 'cancelled');
    perform crore.event(v_queue, v_now, 'cancelled', v_id, 'cancelled');
    perform crore.drop_oldest_like(v_queue, 6, j.traits, v_now);
    v_ended := v_ended || j.n;
    v_ids := v_ids || v_id;
  end loop;
  if cardinality(v_ended) > 0 then
    perform crore.notify_dependents(case when v_cross then null else array[v_queue] end, v_now, v_ended, v_ids,
      array_fill(6, array[cardinality(v_ended)]));
  end if;
  if v_freed then perform crore.wake(v_queue); end if;
  return v_applied;
end $$;

-- reportSuccess: active jobs, and jobs that were delivered and have had no report since (the stored error begins with character 1 if they have).
create function crore.report_success(p_now bigint, p_cross boolean, p_name text, p_ids text[]) returns boolean[] language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_cross boolean := p_cross or crore.concerns_others(crore.numbers_of(p_name, p_ids));
  v_queue int;
  v_applied boolean[] := '{}';
  v_ended bigint[] := '{}';
  v_ids text[] := '{}';
  v_events text[] := '{}';
  v_id text;
  j record;
begin
  if v_cross then perform crore.lock_all_queues(); end if;
  v_queue := crore.enter(p_name);
  if v_queue is null then return array_fill(false, array[cardinality(p_ids)]); end if;
  perform crore.split_leases_of(v_queue, p_ids);
  foreach v_id in array p_ids loop
    select k.*, crore.traits(r.spec, r.traits) as traits into j from crore.record_named(v_queue, v_id) r cross join lateral crore.row_at(r.n) k
      where (k.state = 3 or (k.state in (1, 2) and k.attempt > 0 and left(coalesce(k.outcome, ''), 1) <> chr(1)));
    v_applied := v_applied || found;
    continue when not found;
    perform crore.bump_state(v_queue, j.state, -1);
    if j.state <> 3 then perform crore.bump(v_queue, bytes => -j.size); end if;
    if j.grp is not null and j.state = 2 then perform crore.leave_group(v_queue, j.grp); end if;
    if j.grp is not null and j.state = 3 then perform crore.release_group(v_queue, j.grp, v_now); end if;
    if j.state <> 3 then perform crore.let_go(v_queue, j.grp, j.n, v_now); end if;
    v_events := v_events || crore.count_outcome(v_queue, v_now, j.token, true);
    perform crore.close_job(v_queue, v_now, j.n, 4, j.attempt, j.crashes, null);
    perform crore.event(v_queue, v_now, 'done', v_id);
    perform crore.drop_oldest_like(v_queue, 4, j.traits, v_now);
    v_ended := v_ended || j.n;
    v_ids := v_ids || v_id;
  end loop;
  perform crore.breaker_events(v_queue, v_now, v_events);
  if cardinality(v_ended) > 0 then
    perform crore.notify_dependents(case when v_cross then null else array[v_queue] end, v_now, v_ended, v_ids,
      array_fill(4, array[cardinality(v_ended)]));
    perform crore.wake(v_queue);
  end if;
  return v_applied;
end $$;

-- rerun. p_from: numbers of the states from which it is allowed.
create function crore.rerun(p_now bigint, p_name text, p_ids text[], p_from int[], p_line text) returns boolean[] language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_queue int := crore.enter(p_name);
  v_applied boolean[] := '{}';
  v_id text;
  v_seq bigint;
  j record;
begin
  if v_queue is null then return array_fill(false, array[cardinality(p_ids)]); end if;
  foreach v_id in array p_ids loop
    select k.* into j from crore.record_named(v_queue, v_id) r cross join lateral crore.row_at(r.n) k
      where k.state > 3 and k.until < crore.hidden() and k.state = any(p_from);
    v_applied := v_applied || found;
    continue when not found;
    update crore.jobs set state = 2, attempt = 0, crashes = 0, at = null, until = null, outcome = null, outcome_bytes = null, ran = v_now,
      seq = nextval('crore.backs') where n = j.n returning seq into v_seq;
    perform crore.bump_state(v_queue, j.state, -1);
    perform crore.bump(v_queue, ready => 1, bytes => j.size, placed => true);
    perform crore.list_job(v_queue, j.priority, j.grp, v_seq);
    perform crore.event(v_queue, v_now, 'revived', v_id);
    if p_line is not null then perform crore.append_attempt(j.n, p_line); end if;
    -- When a job is run again from its beginning, its children are new ones with new ids.
    update crore.notes set children = split_part(children, ' ', 1)::int + split_part(children, ' ', 2)::int || ' 0 []'
      where n = j.n and children is not null;
    if j.grp is not null then perform crore.enter_group(v_queue, j.grp, v_now); end if;
  end loop;
  perform crore.wake(v_queue);
  return v_applied;
end $$;

create function crore.remove(p_name text, p_ids text[]) returns boolean[] language plpgsql as $$
declare
  v_queue int := crore.enter(p_name);
  v_applied boolean[] := '{}';
  v_id text;
begin
  if v_queue is null then return array_fill(false, array[cardinality(p_ids)]); end if;
  foreach v_id in array p_ids loop
    v_applied := v_applied || crore.remove_ended(v_queue, v_id);
  end loop;
  return v_applied;
end $$;

-- update. p_payload: {body or bytes, size}, or null; p_at and p_delay: at most one. Returns the number of the state in which the job was found.
create function crore.update_job(p_now bigint, p_name text, p_id text, p_payload jsonb, p_priority int, p_at bigint, p_delay bigint,
  p_line text)
returns int language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_queue int := crore.enter(p_name);
  v_due bigint := coalesce(p_at, v_now + p_delay);
  v_later boolean;
  v_seq bigint;
  j record;
begin
  if v_queue is null then return null; end if;
  perform crore.make_rows(v_queue, array[p_id]);
  select k.* into j from crore.record_named(v_queue, p_id) r cross join lateral crore.row_at(r.n) k;
  if not found then return null; end if;
  if j.state > 2 then return j.state; end if;
  if p_payload is not null then perform crore.replace_payload(v_queue, j.n, p_payload); end if;
  if v_due is not null or coalesce(p_priority, j.priority) <> j.priority then
    if j.state = 0 then
      update crore.jobs set priority = coalesce(p_priority, priority), at = coalesce(v_due, at) where n = j.n;
    else
      v_due := coalesce(v_due, case when j.state = 1 then j.at else v_now end);
      v_later := v_due > v_now;
      if j.state = 2 and j.grp is not null then perform crore.leave_group(v_queue, j.grp); end if;
      update crore.jobs set state = case when v_later then 1 else 2 end, priority = coalesce(p_priority, priority),
        at = case when v_later then v_due end, ran = case when v_later then null else v_now end,
        seq = case when v_later then 0 else crore.new_place(v_queue, j.grp, j.n) end where n = j.n returning seq into v_seq;
      perform crore.bump_state(v_queue, j.state, -1);
      perform crore.bump_state(v_queue, case when v_later then 1 else 2 end, 1, placed => true, due => v_due);
      if not v_later then perform crore.list_job(v_queue, coalesce(p_priority, j.priority), j.grp, v_seq); end if;
      if not v_later and j.grp is not null then perform crore.enter_group(v_queue, j.grp, v_now, j.n); end if;
    end if;
  end if;
  if p_line is not null then perform crore.append_attempt(j.n, p_line); end if;
  perform crore.event(v_queue, v_now, 'changed', p_id);
  perform crore.wake(v_queue);
  return j.state;
end $$;

-- recordProgress. p_id is null for a raw task. p_step: the progress as a line, p_log: lines; both have chr(30) where the time goes.
create function crore.record_progress(
  p_now bigint, p_name text, p_job bigint, p_token text, p_leased int, p_id text, p_progress text, p_step text, p_log text
) returns boolean language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_queue int := crore.enter(p_name);
begin
  if p_id is null then
    return exists (select 1 from crore.task_at(v_queue, p_job) t where t.token = p_token or t.worker is null and (t.seq < 0) is not true
      and exists (select 1 from crore.task_lease_of(v_queue, p_job) l where l.token = p_token));
  end if;
  perform crore.split_leases(v_queue, array[p_job]);
  perform 1 from crore.row_at(p_job) j cross join lateral crore.record_at(v_queue, j.n) r
    where j.queue = v_queue and j.token = p_token and j.attempt = p_leased and r.id = p_id;
  if not found then return false; end if;
  if p_progress is not null then
    perform crore.event(v_queue, v_now, 'progress', p_id, p_progress);
    perform crore.write_progress(p_job, p_progress, crore.with_times(p_step, v_now));
  end if;
  if p_log is not null then perform crore.append_log(p_job, crore.with_times(p_log, v_now)); end if;
  return true;
end $$;

-- Puts the time in front of every line: the form of src/job/timed-lines.ts.
create function crore.with_times(p_text text, p_now bigint) returns text language sql immutable as $$
  select case when p_text = '' then '' else
    m || replace(left(p_text, -1), chr(10), chr(10) || m) || right(p_text, 1) end from (select chr(31) || p_now || chr(31) as m) t
$$;

-- close of a batch: no more members. Returns the number of the state of its job, null if there is none.
create function crore.close_batch(p_now bigint, p_name text, p_id text) returns int language plpgsql as $$
declare
  v_queue int := crore.enter(p_name);
  b record;
begin
  select j.n, j.state, o.open into b from crore.record_named(v_queue, p_id) r cross join lateral crore.row_at(r.n) j
    join crore.batches o on o.n = j.n;
  if not found then return null; end if;
  if not b.open or b.state <> 0 then return b.state; end if;
  update crore.batches set open = false where n = b.n;
  if crore.is_held(b.n) then return b.state; end if;
  return crore.unblock(v_queue, crore.time(p_now), b.n);
end $$;
