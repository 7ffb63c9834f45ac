-- Queues in which there is nothing to do.

-- Nothing waits or is leased, and whoever adds something next sends a signal.
create function crore.is_quiet(c crore.counters) returns boolean language sql immutable as $$
  select c.hungry and c.tasks = 0 and c.ready = 0 and c.active = 0
$$;

-- For how many milliseconds the queue needs no sweep unless a signal comes first; 0: it needs the usual ones.
create function crore.quiet_for(p_queue int, p_now bigint) returns bigint language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
  v_till bigint := p_now + 300000;
begin
  if not crore.is_quiet(c) then return 0; end if;
  if c.scheduled > 0 then
    v_till := least(v_till, (select min(at) from crore.jobs where queue = p_queue and state = 1));
  end if;
  for v_state in 4 .. 6 loop
    if crore.count_of(c, v_state) > 0 then
      v_till := least(v_till, (select min(until) from crore.jobs where queue = p_queue and state = v_state and state > 3));
    end if;
  end loop;
  v_till := least(v_till, (select min(until) from crore.keys where queue = p_queue and until > 0),
    (select min(until) from crore.ended_ids where queue = p_queue),
    (select min(until) from crore.needed where up_queue = p_queue and down = 0));
  return greatest(0, v_till - p_now);
end $$;

-- sweep_quiet: the sweep of queues whose last one said that there is nothing to do. For each whether it is swept; if not, it needs a whole sweep. A queue that
-- somebody else has locked is not quiet, so this waits for no lock. What a crash of the server undoes is swept again.
create function crore.sweep_quiet(p_now bigint, p_names text[], p_leases bigint[]) returns boolean[] language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_swept boolean[] := array_fill(false, array[cardinality(p_names)]);
  v_queue int;
  c crore.counters;
begin
  perform crore.set_up();
  perform set_config('synchronous_commit', 'off', true);
  for i in 1 .. cardinality(p_names) loop
    select n into v_queue from crore.queues where name = p_names[i];
    continue when v_queue is null or not pg_try_advisory_xact_lock(:lock_class, v_queue);
    c := crore.counts(v_queue);
    continue when c.swept is null or c.swept > v_now or v_now - c.swept > p_leases[i] or not crore.is_quiet(c)
      or exists (select 1 from crore.sessions where queue = v_queue and deadline <= v_now);
    c.swept := v_now;
    perform crore.save(c);
    v_swept[i] := true;
  end loop;
  return v_swept;
end $$;
