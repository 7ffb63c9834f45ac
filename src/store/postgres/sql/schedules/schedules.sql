-- Schedules, which add jobs repeatedly.

create function crore.stored_schedule(p_name text) returns table (name text, queue text, definition text, since bigint, next bigint, last bigint)
language sql as $$
  select s.name, q.name, s.definition, s.since, s.next, s.last from crore.schedules s join crore.queues q on q.n = s.queue where s.name = p_name
$$;

-- put: an identical schedule in the same queue stays unchanged. Returns the stored one.
create function crore.put_schedule(p_name text, p_queue text, p_definition text, p_since bigint, p_next bigint)
returns table (name text, queue text, definition text, since bigint, next bigint, last bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_queue int := crore.ensure(p_queue);
begin
  insert into crore.schedules as s (name, queue, definition, since, next) values (p_name, v_queue, p_definition, p_since, p_next)
    on conflict (name) do update set queue = excluded.queue, definition = excluded.definition, since = excluded.since, next = excluded.next, last = null
    where s.queue <> excluded.queue or s.definition <> excluded.definition;
  return query select * from crore.stored_schedule(p_name);
end $$;

-- fire: only while the tick is still the schedule's next one, and due. Other arguments as of add.
create function crore.fire_schedule(
  p_now bigint, p_cross boolean, p_name text, p_queue text, p_definition text, p_tick bigint, p_next bigint, p_last bigint, p_jobs jsonb, p_plain boolean,
  p_others text[]
) returns boolean language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_locked int[] := crore.enter_to_add(p_queue, p_others, p_cross);
  v_queue int := (select n from crore.queues where name = p_queue);
begin
  -- A caller whose clock is ahead must wait until the tick is due.
  if p_tick > v_now + 1000 then return false; end if;
  update crore.schedules set next = p_next, last = p_last where name = p_name and queue = v_queue and next = p_tick and definition = p_definition;
  if not found then return false; end if;
  if jsonb_array_length(p_jobs) > 0 then
    perform crore.add_jobs(v_locked, v_queue, p_jobs, p_plain, null, null, v_now);
  end if;
  return true;
end $$;

create function crore.remove_schedule(p_name text) returns boolean language plpgsql as $$
begin
  delete from crore.schedules where name = p_name;
  return found;
end $$;
