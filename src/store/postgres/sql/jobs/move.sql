-- Moving jobs to another queue.

-- Why a job cannot be moved: unknown, started, linked or taken; null if it can.
create function crore.move_refusal(p_job bigint, p_state int, p_id text, p_spec text, p_traits jsonb, p_target int, p_now bigint) returns text
language plpgsql as $$
begin
  if p_job is null then return 'unknown'; end if;
  if p_state = 0 then return 'linked'; end if;
  if p_state not in (1, 2, 5) then return 'started'; end if;
  if left(p_spec, 1) = '{' and p_spec::jsonb ?| array['needs', 'parent', 'batch', 'batchPolicy'] then return 'linked'; end if;
  if exists (select 1 from crore.edges where up = p_job) or exists (select 1 from crore.needed where up = p_job and down <> 0)
    or crore.has_children(p_job) or exists (select 1 from crore.batches where n = p_job) then
    return 'linked';
  end if;
  if exists (select 1 from crore.found(p_target, array[p_id]))
    or exists (select 1 from crore.ended_ids where queue = p_target and id = p_id and until > p_now)
    or exists (select 1 from crore.keys where queue = p_target and key = p_traits->>'key' and (until = 0 or until > p_now)) then
    return 'taken';
  end if;
  return null;
end $$;

-- A job that was fresh once has a number that may count as that of a fresh job in another queue, where `head` is lower: gives it one of those that jobs with a row
-- have. Nothing depends on a job that may move, and one with a group has never been fresh.
create function crore.renumber(p_queue int, p_job bigint) returns bigint language plpgsql as $$
declare
  v_job bigint := crore.next_row();
begin
  if p_job >= crore.first_row() then return p_job; end if;
  update crore.records set n = v_job where ctid = any(crore.places(p_queue, array[p_job]));
  update crore.jobs set n = v_job where ctid = any(crore.row_places(array[p_job]));
  update crore.notes set n = v_job where n = p_job;
  update crore.needed set up = v_job where up = p_job;
  return v_job;
end $$;

-- The row stays the same, and with it the history of its attempts, its log and its progress. Returns its number.
create function crore.move_one(p_source int, p_target int, p_job bigint, p_now bigint) returns bigint language plpgsql as $$
declare
  v_job bigint := crore.renumber(p_source, p_job);
  j record;
  v_later boolean;
  v_seq bigint;
begin
  select k.*, r.id, r.traits into j from crore.row_at(v_job) k cross join lateral crore.record_at(k.queue, k.n) r;
  v_later := j.state = 1 and j.at > p_now;
  perform crore.bump_state(p_source, j.state, -1);
  if j.state <> 5 then perform crore.bump(p_source, bytes => -j.size); end if;
  if j.grp is not null and j.state = 2 then perform crore.leave_group(p_source, j.grp); end if;
  if j.state <> 5 then perform crore.let_go(p_source, j.grp, j.n, p_now); end if;
  update crore.jobs set queue = p_target, state = case when v_later then 1 else 2 end, at = case when v_later then j.at end,
    ran = case when v_later then null else p_now end, until = null, seq = case when v_later then 0 else nextval('crore.backs') end,
    attempt = case when j.state = 5 then 0 else attempt end, crashes = case when j.state = 5 then 0 else crashes end,
    outcome = case when j.state = 5 then null else outcome end where n = v_job returning seq into v_seq;
  update crore.records set queue = p_target where ctid = any(crore.places(p_source, array[v_job]));
  update crore.needed set up_queue = p_target where up = v_job;
  perform crore.bump(p_target, scheduled => v_later::int, ready => (not v_later)::int, bytes => j.size, placed => true, due => j.at);
  if not v_later then perform crore.list_job(p_target, j.priority, j.grp, v_seq); end if;
  if j.grp is not null and not v_later then perform crore.enter_group(p_target, j.grp, p_now); end if;
  if j.traits ? 'key' then
    delete from crore.keys where queue = p_target and key = j.traits->>'key';
    update crore.keys set queue = p_target where queue = p_source and key = j.traits->>'key' and id = j.id;
  end if;
  perform crore.event(p_source, p_now, 'moved', j.id, (select name from crore.queues where n = p_target));
  perform crore.event(p_target, p_now, 'added', j.id);
  return v_job;
end $$;

-- move. Returns the outcome of each job.
create function crore.move(p_now bigint, p_name text, p_ids text[], p_to text, p_line text) returns table (outcome text) language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_source int;
  v_target int;
  v_job bigint;
  v_id text;
  j record;
begin
  if not exists (select 1 from crore.queues where name = p_name) then
    return query select 'unknown'::text from unnest(p_ids);
    return;
  end if;
  perform crore.enter_all(p_to, array[p_name]);
  select n into v_source from crore.queues where name = p_name;
  select n into v_target from crore.queues where name = p_to;
  perform crore.make_rows(v_source, p_ids);
  foreach v_id in array p_ids loop
    select k.n, k.state, r.spec, r.traits into j from crore.record_named(v_source, v_id) r cross join lateral crore.row_at(r.n) k
      where (k.until is null or k.until < crore.hidden());
    outcome := crore.move_refusal(j.n, j.state, v_id, j.spec, j.traits, v_target, v_now);
    if outcome is null then
      outcome := 'moved';
      v_job := crore.move_one(v_source, v_target, j.n, v_now);
      if p_line is not null then perform crore.append_attempt(v_job, p_line); end if;
      delete from crore.awaited where queue = v_source and id = v_id;
      -- It is no longer here: whoever waits for it asks.
      if found then
        perform crore.bump(v_source, awaited => -1);
        perform crore.signal(v_source, 'f', v_id);
      end if;
    end if;
    return next;
  end loop;
  perform crore.wake(v_source);
  perform crore.wake(v_target);
end $$;
