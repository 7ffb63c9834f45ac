-- The consequences of a job's end: its record is kept or removed, its unique key freed, its dependents notified.

-- Keeps, hides or removes the record. The caller has already adjusted the count of the previous state.
create function crore.close_job(
  p_queue int, p_now bigint, p_job bigint, p_state int, p_attempt int, p_crashes int, p_outcome text, p_bytes bytea default null
) returns void language plpgsql as $$
declare
  r record;
  v_ms bigint;
  v_kept boolean;
begin
  select id, crore.traits(spec, traits) as traits into r from crore.record_at(p_queue, p_job);
  perform crore.keep_awaited(p_queue, p_now, p_job, r.id);
  v_ms := crore.keep_ms(r.traits, p_state);
  v_kept := v_ms > 0 and crore.keep_count(r.traits, p_state) > 0;
  if v_kept or crore.is_needed(p_job) then
    update crore.jobs set state = p_state, attempt = p_attempt, crashes = p_crashes, ran = at || ' ' || worker, at = p_now,
      until = case when v_kept then p_now + v_ms else crore.hidden() end, outcome = p_outcome, outcome_bytes = p_bytes, worker = null, token = null
      where n = p_job;
    if v_kept and p_state = 4 then
      perform crore.bump(p_queue, done => 1, done_from => p_now + v_ms);
    elsif v_kept then
      perform crore.bump_state(p_queue, p_state, 1);
    end if;
  else
    perform crore.delete_job(p_job);
  end if;
  if r.traits is null then return; end if;
  if r.traits ? 'key' and r.traits->>'scope' <> 'window' then perform crore.free_key(p_queue, r.traits->>'key', r.id); end if;
  if r.traits ? 'window' then
    insert into crore.ended_ids (queue, id, until) values (p_queue, r.id, p_now + (r.traits->>'window')::bigint)
      on conflict (queue, id) do update set until = excluded.until;
  end if;
end $$;

-- Drops these records, or hides those that somebody needs; returns how many there were.
create function crore.drop_records(p_queue int, p_state int, p_jobs bigint[]) returns int language plpgsql as $$
declare
  v_free bigint[];
begin
  if p_jobs is null then return 0; end if;
  select array_agg(u.n) into v_free from unnest(p_jobs) u(n) where not exists (select 1 from crore.needed where up = u.n);
  if cardinality(v_free) < cardinality(p_jobs) or v_free is null then
    update crore.jobs set until = crore.hidden()
      where n in (select u.n from unnest(p_jobs) u(n) where exists (select 1 from crore.needed where up = u.n));
  end if;
  delete from crore.jobs where n = any(v_free);
  delete from crore.records where ctid = any(crore.places(p_queue, v_free));
  delete from crore.notes where n = any(v_free);
  delete from crore.batches where n = any(v_free);
  delete from crore.edges where down = any(v_free);
  perform crore.bump_state(p_queue, p_state, -cardinality(p_jobs));
  return cardinality(p_jobs);
end $$;

-- Drops the oldest records of a state beyond their number. A done job is not dropped within 5 s of its end: somebody may be about to ask for it.
create function crore.drop_oldest(p_queue int, p_state int, p_ms bigint, p_count bigint, p_now bigint) returns void language plpgsql as $$
declare
  v_over bigint := least(crore.count_of(crore.counts(p_queue), p_state) - p_count, 1000);
  v_dropped int;
begin
  if v_over <= 0 then return; end if;
  v_dropped := crore.drop_until(p_queue, p_state, case when p_state = 4 then p_now + p_ms - 5000 else crore.hidden() - 1 end, v_over);
  if p_state = 5 and v_dropped > 0 then perform crore.bump(p_queue, dropped => v_dropped); end if;
end $$;

-- Drops at most this many records whose retention ends by then, the oldest first; returns how many. Raises the bound of done jobs to the first one
-- that it finds.
create function crore.drop_until(p_queue int, p_state int, p_last bigint, p_limit bigint) returns int language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
  v_from bigint := case when p_state = 4 then c.done_from else 0 end;
  v_jobs bigint[];
  v_first bigint;
begin
  if v_from > p_last then return 0; end if;
  select array_agg(n), min(until) into v_jobs, v_first from (select n, until from crore.jobs
    where queue = p_queue and state = p_state and state > 3 and until >= v_from and until <= p_last order by until, n limit p_limit) o;
  -- Where nothing is found, all entries up to there are dead.
  v_first := coalesce(v_first, p_last + 1);
  if p_state = 4 and v_first > c.done_from then
    c.done_from := v_first;
    perform crore.save(c);
  end if;
  return crore.drop_records(p_queue, p_state, v_jobs);
end $$;

-- The same for a job that has just ended, as it asks for.
create function crore.drop_oldest_like(p_queue int, p_state int, p_traits jsonb, p_now bigint) returns void language plpgsql as $$
declare
  v_ms bigint := crore.keep_ms(p_traits, p_state);
  v_count bigint := crore.keep_count(p_traits, p_state);
begin
  if v_ms > 0 and v_count > 0 then perform crore.drop_oldest(p_queue, p_state, v_ms, v_count, p_now); end if;
end $$;

-- Removes the record of an ended job, even if somebody needs it, and frees its id; returns whether there was one.
create function crore.remove_ended(p_queue int, p_id text) returns boolean language plpgsql as $$
declare
  r record;
begin
  delete from crore.ended_ids where queue = p_queue and id = p_id;
  select j.n, j.state, j.until into r from crore.record_named(p_queue, p_id) d cross join lateral crore.row_at(d.n) j where j.state > 3;
  if not found then return false; end if;
  perform crore.delete_job(r.n);
  delete from crore.needed where up = r.n;
  if r.until <> crore.hidden() then perform crore.bump_state(p_queue, r.state, -1); end if;
  return true;
end $$;

-- A blocked job waits for nothing any more: it is ready, or scheduled if its time has not come. Returns its state.
create function crore.unblock(p_queue int, p_now bigint, p_job bigint) returns int language plpgsql as $$
declare
  j record;
  v_seq bigint;
begin
  select at, grp, priority into j from crore.jobs where n = p_job;
  if j.at > p_now then
    update crore.jobs set state = 1, seq = 0, ran = null where n = p_job;
    perform crore.bump(p_queue, blocked => -1, scheduled => 1, due => j.at);
  else
    v_seq := crore.new_place(p_queue, j.grp, p_job);
    update crore.jobs set state = 2, seq = v_seq, ran = p_now where n = p_job;
    perform crore.bump(p_queue, blocked => -1, ready => 1, placed => true);
    perform crore.list_job(p_queue, j.priority, j.grp, v_seq);
    if j.grp is not null then perform crore.enter_group(p_queue, j.grp, p_now, p_job); end if;
  end if;
  perform crore.wake(p_queue);
  return case when j.at > p_now then 1 else 2 end;
end $$;

-- Whether a blocked job still waits for another one, for members of its batch, or for the batch to be closed.
create function crore.is_held(p_job bigint) returns boolean language plpgsql as $$
begin
  if crore.has_children(p_job) then
    return exists (select 1 from crore.edges where down = p_job and not member);
  end if;
  return exists (select 1 from crore.edges where down = p_job) or exists (select 1 from crore.batches where n = p_job and open);
end $$;

-- A member of a batch has ended. Returns whether the job of the batch runs now, although others have not ended.
create function crore.count_member(p_batch bigint, p_state int) returns boolean language plpgsql as $$
declare
  v_policy text;
begin
  update crore.batches set done = done + (p_state = 4)::int, dead = dead + (p_state = 5)::int, cancelled = cancelled + (p_state = 6)::int,
    open = open and not (policy = 'failure' and p_state <> 4)
    where n = p_batch returning policy into v_policy;
  return coalesce(v_policy = 'failure' and p_state <> 4, false);
end $$;

-- Notifies the dependents of ended jobs, and their own dependents if that ends them too. `p_locked`: see crore.reach.
create function crore.notify_dependents(p_locked int[], p_now bigint, p_jobs bigint[], p_ids text[], p_states int[])
returns void language plpgsql as $$
declare
  i int := 1;
  v_state int;
  v_parked boolean;
  v_anyway boolean;
  v_why text;
  r record;
  j record;
begin
  while i <= cardinality(p_jobs) loop
    for r in select e.down, e.policy, e.member, d.queue from crore.edges e cross join lateral crore.row_at(e.down) k
        cross join lateral crore.record_at(k.queue, k.n) d where e.up = p_jobs[i] order by d.id loop
      perform crore.reach(p_locked, r.queue);
      delete from crore.edges where up = p_jobs[i] and down = r.down;
      select k.*, d.id, d.traits into j from crore.row_at(r.down) k cross join lateral crore.record_at(k.queue, k.n) d;
      continue when not found;
      v_anyway := r.member and crore.count_member(r.down, p_states[i]);
      continue when j.state <> 0;
      v_parked := crore.has_children(r.down);
      if p_states[i] <> 4 and r.policy = 'success' then
        v_state := case when v_parked then 5 else 6 end;
        v_why := crore.skip_reason(v_parked, p_ids[i], p_states[i]);
        delete from crore.edges where down = r.down and not member;
        perform crore.bump(j.queue, blocked => -1, bytes => -j.size);
        if crore.let_go(j.queue, j.grp, j.n, p_now) then perform crore.wake(j.queue); end if;
        perform crore.close_job(j.queue, p_now, j.n, v_state, j.attempt, j.crashes, v_why);
        perform crore.event(j.queue, p_now, case when v_parked then 'dead' else 'cancelled' end, j.id, v_why);
        p_jobs := p_jobs || j.n;
        p_ids := p_ids || j.id;
        p_states := p_states || v_state;
      elsif (v_anyway and not v_parked) or not crore.is_held(r.down) then
        perform crore.unblock(j.queue, p_now, r.down);
      end if;
    end loop;
    delete from crore.edges where up = p_jobs[i];
    i := i + 1;
  end loop;
  if exists (select 1 from crore.needed where down = any(p_jobs)) then
    for i in 1 .. cardinality(p_jobs) loop
      perform crore.release_needs(p_locked, p_jobs[i]);
    end loop;
  end if;
end $$;

-- Why a blocked job ends without running, or without running again: the words of src/job/transitions.ts.
create function crore.skip_reason(p_parked boolean, p_id text, p_state int) returns text language sql immutable as $$
  select case when p_parked then 'a child' else 'an upstream job' end || ' ended '
    || case p_state when 4 then 'done' when 5 then 'dead' else 'cancelled' end || ': ' || p_id
$$;
