-- What the library makes of the options of a job, for those who call SQL. Checked in options.sql.

-- A UUIDv7; within a millisecond, ordered by the microsecond.
create function crore.new_id() returns text language sql volatile as $$
  select left(s, 8) || '-' || substr(s, 9, 4) || '-7' || lpad(to_hex((us % 1000 * 4096 / 1000)::int), 3, '0') || '-' || substr(r, 20, 4) || '-' || substr(r, 25)
  from (select us, lpad(to_hex(us / 1000), 12, '0') as s, gen_random_uuid()::text as r
    from (select floor(extract(epoch from clock_timestamp()) * 1000000)::bigint as us) c) p
$$;

-- The stored form of the options: see src/job/spec.ts. Only what differs from the defaults.
create function crore.spec_of(p_queue text, o jsonb, p_now bigint) returns jsonb language plpgsql as $$
declare
  v_keep jsonb := case when o ? 'keep' or o ? 'keepDead' then jsonb_build_object('done', crore.keep_option(o->'keep', 'keep', 3600000, 1000),
    'dead', crore.keep_option(o->'keepDead', 'keepDead', 2592000000, 100000)) end;
  v_due bigint := greatest(0, coalesce(crore.moment_option(o->'at', 'at') - p_now, crore.duration_option(o->'delay', 'delay')));
  v_window bigint;
begin
  if o ? 'id' then
    v_window := coalesce(crore.duration_option(o->'idWindow', 'idWindow'),
      case when (v_keep->'done'->>'count')::bigint = 0 then 0 else coalesce((v_keep->'done'->>'ms')::bigint, 3600000) end);
  elsif o ? 'idWindow' then
    perform crore.refuse('add: ''idWindow'' needs an ''id''');
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'attempts', coalesce(crore.number_option(o->'attempts', 'attempts', 1, 1000000, true), case when o ? 'retryFor' then 1000000 end),
    'backoff', crore.backoff_option(o->'backoff'),
    'reservation', case when o ? 'reservation' then greatest(1, crore.duration_option(o->'reservation', 'reservation')) end,
    'expires', case when o ? 'expires' then greatest(1, crore.duration_option(o->'expires', 'expires')) end,
    'retryFor', crore.duration_option(o->'retryFor', 'retryFor') + v_due,
    'keep', v_keep,
    'idWindow', nullif(v_window, 0),
    'headers', crore.headers_option(o->'headers'),
    'group', case when o ? 'group' then crore.name_option(o->'group', 'group') end,
    'unique', crore.unique_option(o->'unique'),
    'needs', crore.needs_option(o->'needs', p_queue),
    'parent', crore.ref_option(o->'parent', 'parent'),
    'batch', crore.ref_option(o->'batch', 'batch')));
end $$;
