-- Records that somebody still needs are dropped neither by count nor by age: they are hidden (`until` is 100000000000000), can be read by id, are
-- neither listed nor counted, and go with the last one who needs them. See src/store/sqlite/kept-records.ts.

create function crore.hidden() returns bigint language sql immutable as $$ select 100000000000000 $$;

create function crore.is_needed(p_job bigint) returns boolean language sql as $$
  select exists (select 1 from crore.needed where up = p_job)
$$;

create function crore.keep_record(p_up bigint, p_up_queue int, p_down bigint, p_down_queue int) returns void language sql as $$
  update crore.jobs set linked = true where n in (p_up, p_down) and not linked;
  insert into crore.needed (up, down, up_queue, far) values (p_up, p_down, p_up_queue, p_up_queue <> p_down_queue)
    on conflict (up, down) do update set until = 0
$$;

-- Before a job ends: keeps its record for a minute if somebody waits for it, and signals its end.
create function crore.keep_awaited(p_queue int, p_now bigint, p_job bigint, p_id text) returns void language plpgsql as $$
begin
  delete from crore.awaited where queue = p_queue and id = p_id;
  if not found then return; end if;
  perform crore.bump(p_queue, awaited => -1);
  insert into crore.needed (up, down, up_queue, until, far) values (p_job, 0, p_queue, p_now + 60000, false)
    on conflict (up, down) do update set until = excluded.until;
  perform crore.signal(p_queue, 'f', p_id);
end $$;

create function crore.delete_job(p_job bigint) returns void language plpgsql as $$
begin
  delete from crore.records where ctid = any(array(select p.place from crore.row_at(p_job) j cross join lateral unnest(crore.places(j.queue, array[p_job])) p(place)));
  delete from crore.jobs where n = p_job;
  delete from crore.notes where n = p_job;
  delete from crore.batches where n = p_job;
  -- The job of a batch may end before its members.
  delete from crore.edges where down = p_job;
end $$;

create function crore.drop_hidden(p_job bigint) returns void language plpgsql as $$
begin
  if exists (select 1 from crore.jobs where n = p_job and state > 3 and until = crore.hidden()) then
    perform crore.delete_job(p_job);
  end if;
end $$;

create function crore.release(p_up bigint, p_down bigint) returns void language plpgsql as $$
begin
  delete from crore.needed where up = p_up and down = p_down;
  if not crore.is_needed(p_up) then perform crore.drop_hidden(p_up); end if;
end $$;

-- When a job has ended: it no longer needs the records of its upstream jobs.
create function crore.release_needs(p_locked int[], p_job bigint) returns void language plpgsql as $$
declare
  r record;
begin
  for r in select up, up_queue from crore.needed where down = p_job order by up loop
    perform crore.reach(p_locked, r.up_queue);
    perform crore.release(r.up, p_job);
  end loop;
end $$;
