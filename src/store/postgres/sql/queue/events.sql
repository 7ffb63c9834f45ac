-- Events of jobs, and the history of queues.

-- record: for this many milliseconds; returns the position of the last event. If recording had lapsed, a `gap` event says so.
create function crore.record_events(p_now bigint, p_name text, p_ms bigint) returns bigint language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_queue int := crore.ensure(p_name);
  v_watched bigint := (select watched from crore.queues where n = v_queue);
begin
  update crore.queues set watched = greatest(v_watched, v_now + p_ms) where n = v_queue;
  if v_watched <= v_now then perform crore.event(v_queue, v_now, 'gap', ''); end if;
  perform crore.trim_events(v_queue, v_now);
  return coalesce((select max(n) from crore.events where queue = v_queue), 0);
end $$;

create function crore.sum_objects(a jsonb, b jsonb) returns jsonb language sql immutable as $$
  select coalesce(jsonb_object_agg(key, total), '{}') from (
    select key, sum(value::numeric) as total from (select * from jsonb_each_text(a) union all select * from jsonb_each_text(b)) both_ group by key) s
$$;

-- record of the history. p_activity: as written by src/store/history.ts; p_ranges: names, steps in milliseconds, numbers of steps.
create function crore.record_history(p_now bigint, p_name text, p_activity jsonb, p_ranges text[], p_steps bigint[]) returns void
language plpgsql as $$
declare
  v_now bigint := crore.time(p_now);
  v_queue int := case when p_name = '' then crore.ensure(p_name) else crore.enter(p_name) end;
  c crore.counters;
  v_old jsonb;
  v_new jsonb;
begin
  if v_queue is null then return; end if;
  c := crore.counts(v_queue);
  for i in 1 .. cardinality(p_ranges) loop
    select activity::jsonb into v_old from crore.history
      where queue = v_queue and range = p_ranges[i] and interval = v_now / p_steps[i];
    v_new := p_activity;
    if v_old is not null then
      v_new := crore.sum_objects(p_activity - array['w', 'r'], v_old - array['w', 'r', 'n'])
        || jsonb_build_object('w', crore.sum_objects(p_activity->'w', v_old->'w'), 'r', crore.sum_objects(p_activity->'r', v_old->'r'));
    end if;
    v_new := v_new || jsonb_build_object('n', c.blocked + c.scheduled + c.ready + c.active);
    insert into crore.history (queue, range, interval, activity) values (v_queue, p_ranges[i], v_now / p_steps[i], v_new::text)
      on conflict (queue, range, interval) do update set activity = excluded.activity;
    if v_old is null then perform crore.drop_history(v_queue, v_now); end if;
  end loop;
end $$;

-- The ranges of src/store/history.ts.
create function crore.drop_history(p_queue int, p_now bigint) returns void language sql as $$
  delete from crore.history where queue = p_queue and interval <= case range when 'hour' then p_now / 60000 - 60
    when 'day' then p_now / 900000 - 96 else p_now / 21600000 - 120 end
$$;
