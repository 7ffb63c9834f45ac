-- What a job that needs other jobs, or waits for them as its children, has to wait for.

-- Before anything is written, checks that every upstream job exists or comes earlier in the call, and that batches are open.
create function crore.check_relations(p_name text, p_jobs jsonb) returns void language plpgsql as $$
declare
  v_seen text[] := '{}';
  v_job jsonb;
  v_need jsonb;
  b record;
begin
  for v_job in select * from jsonb_array_elements(p_jobs) loop
    for v_need in select * from jsonb_array_elements(coalesce(v_job->'needs', '[]')) loop
      continue when v_need->>'queue' = p_name and v_need->>'id' = any(v_seen);
      continue when exists (select 1 from crore.queues q cross join lateral crore.record_named(q.n, v_need->>'id') r where q.name = v_need->>'queue');
      raise exception using errcode = 'CR002',
        message = 'upstream job ''' || (v_need->>'id') || ''' of queue ''' || (v_need->>'queue') || ''' does not exist';
    end loop;
    v_seen := v_seen || (v_job->>'id');
    continue when not v_job ? 'batch';
    select o.open and j.state = 0 as open into b from crore.queues q cross join lateral crore.record_named(q.n, v_job->'batch'->>'id') r
      cross join lateral crore.row_at(r.n) j join crore.batches o on o.n = j.n where q.name = v_job->'batch'->>'queue';
    if not found then
      raise exception using errcode = 'CR003',
        message = 'there is no batch ''' || (v_job->'batch'->>'id') || ''' in queue ''' || (v_job->'batch'->>'queue') || '''';
    elsif not b.open then
      raise exception using errcode = 'CR004',
        message = 'batch ''' || (v_job->'batch'->>'id') || ''' of queue ''' || (v_job->'batch'->>'queue') || ''' is closed';
    end if;
  end loop;
end $$;

-- Writes the edges of a job. `p_needs`: [{queue, id, on}]. Returns why it can never run, if so (then nothing is written), and whether it has to wait.
create function crore.connect(p_queue int, p_job bigint, p_needs jsonb, p_parked boolean, out failed text, out waits boolean)
language plpgsql as $$
declare
  v_need jsonb;
  u crore.jobs;
begin
  waits := false;
  perform crore.make_rows_of(p_needs);
  for v_need in select * from jsonb_array_elements(p_needs) loop
    u := crore.row_of(v_need->>'queue', v_need->>'id');
    -- An upstream job of the same call that was refused because the queue is full counts as cancelled.
    if v_need->>'on' = 'success' and coalesce(u.state, 6) > 4 then
      failed := crore.skip_reason(p_parked, v_need->>'id', coalesce(u.state, 6));
    end if;
  end loop;
  if failed is not null then return; end if;
  for v_need in select * from jsonb_array_elements(p_needs) loop
    u := crore.row_of(v_need->>'queue', v_need->>'id');
    continue when u.n is null;
    if u.state < 4 then
      insert into crore.edges (up, down, policy, far) values (u.n, p_job, v_need->>'on', u.queue <> p_queue) on conflict do nothing;
      waits := true;
    end if;
    perform crore.keep_record(u.n, u.queue, p_job, p_queue);
  end loop;
end $$;

-- Makes a new job a member of its batch, which is open.
create function crore.join_batch(p_queue int, p_job bigint, p_batch jsonb) returns void language plpgsql as $$
declare
  b record;
begin
  select r.n, r.queue into b from crore.queues q cross join lateral crore.record_named(q.n, p_batch->>'id') r where q.name = p_batch->>'queue';
  insert into crore.edges (up, down, policy, member, far) values (p_job, b.n, 'finished', true, b.queue <> p_queue);
  update crore.jobs set linked = true where n in (p_job, b.n) and not linked;
  update crore.batches set total = total + 1 where n = b.n;
end $$;
