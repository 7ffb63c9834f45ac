-- Sessions of workers.

create function crore.join(p_now bigint, p_name text, p_worker text, p_lease bigint, p_info text, p_raw boolean) returns void language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_queue int := crore.ensure(p_name);
begin
  insert into crore.sessions (queue, worker, deadline, info, raw) values (v_queue, p_worker, v_now + p_lease, p_info, p_raw)
    on conflict (queue, worker) do update set deadline = excluded.deadline, info = excluded.info, raw = excluded.raw;
  -- From here on a gap between sweeps can be recognised.
  if (crore.counts(v_queue)).swept is null then perform crore.bump(v_queue, swept => v_now); end if;
end $$;

-- heartbeat. Arrays of the same length; false where a session is gone or was declared dead. Takes no lock of a queue.
create function crore.heartbeat(p_now bigint, p_names text[], p_workers text[], p_leases bigint[]) returns boolean[] language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_alive boolean[] := '{}';
begin
  for i in 1 .. cardinality(p_names) loop
    update crore.sessions s set deadline = v_now + p_leases[i] from crore.queues q
      where q.name = p_names[i] and s.queue = q.n and s.worker = p_workers[i] and s.deadline >= 0;
    v_alive := v_alive || found;
  end loop;
  return v_alive;
end $$;

create function crore.leave(p_now bigint, p_name text, p_worker text, p_only_expired boolean) returns void language plpgsql as $$
declare
  v_queue int := crore.enter(p_name);
begin
  if exists (select 1 from crore.jobs where queue = v_queue and worker = p_worker and state = 3)
    or exists (select 1 from crore.leases where queue = v_queue and worker = p_worker)
    or exists (select 1 from crore.task_leases where queue = v_queue and worker = p_worker)
    or exists (select 1 from crore.tasks where queue = v_queue and worker = p_worker and worker is not null) then
    return;
  end if;
  delete from crore.sessions where queue = v_queue and worker = p_worker and (not p_only_expired or deadline <= crore.time(p_now));
end $$;

create function crore.expire_session(p_name text, p_worker text) returns boolean language plpgsql as $$
declare
  v_queue int := crore.ensure(p_name);
begin
  update crore.sessions set deadline = -1 where queue = v_queue and worker = p_worker;
  return found;
end $$;

create function crore.update_session(p_name text, p_worker text, p_info text) returns boolean language plpgsql as $$
declare
  v_queue int := crore.ensure(p_name);
begin
  update crore.sessions set info = p_info where queue = v_queue and worker = p_worker and deadline >= 0;
  return found;
end $$;
