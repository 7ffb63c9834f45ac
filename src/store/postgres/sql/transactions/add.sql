-- For everybody who can call SQL: adds one job in the current transaction.

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

-- See lib/traits.sql.
create function crore.traits_of(p_spec jsonb) returns jsonb language sql as $$
  select nullif(jsonb_strip_nulls(jsonb_build_object(
    'done', case when p_spec->'keep'->'done' <> '{"ms": 3600000, "count": 1000}' then jsonb_build_array(p_spec->'keep'->'done'->'ms', p_spec->'keep'->'done'->'count') end,
    'dead', case when p_spec->'keep'->'dead' <> '{"ms": 2592000000, "count": 100000}' then jsonb_build_array(p_spec->'keep'->'dead'->'ms', p_spec->'keep'->'dead'->'count') end,
    'key', p_spec->'unique'->'key', 'scope', p_spec->'unique'->'scope', 'window', p_spec->'idWindow')), '{}')
$$;

-- Adds a job to a queue in the current transaction; returns its id, or that of the job that is there already. The options are those of the library.
create function crore.add(queue text, payload jsonb, options jsonb default '{}') returns text language plpgsql
set lock_timeout = '20s' set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
declare
  v_now bigint := crore.time(null);
  v_body text := coalesce(payload, 'null')::text;
  v_spec jsonb;
  v_job jsonb;
  v_others text[];
  v_existing text;
begin
  perform crore.name_option(to_jsonb(queue), 'queue name');
  perform crore.check_options(options, array['id', 'idWindow', 'delay', 'at', 'priority', 'attempts', 'retryFor', 'backoff', 'reservation', 'unique', 'needs',
    'expires', 'keep', 'keepDead', 'group', 'headers', 'batch', 'parent'], 'add');
  options := jsonb_strip_nulls(options);
  if options ? 'delay' and options ? 'at' then perform crore.refuse('add: give ''delay'' or ''at'', not both'); end if;
  if octet_length(v_body) > 1048576 then
    perform crore.refuse(format('payload for queue ''%s'' is %s bytes, the limit is 1048576', queue, octet_length(v_body)));
  end if;
  v_spec := crore.spec_of(queue, options, v_now);
  v_job := jsonb_strip_nulls(jsonb_build_object(
    'id', case when options ? 'id' then crore.name_option(options->'id', 'job id') else crore.new_id() end,
    'size', octet_length(v_body), 'priority', coalesce(crore.number_option(options->'priority', 'priority', -1000000, 1000000, true), 0),
    'at', crore.moment_option(options->'at', 'at'), 'delay', crore.duration_option(options->'delay', 'delay'),
    'spec', nullif(v_spec, '{}')::text, 'traits', crore.traits_of(v_spec), 'group', v_spec->'group', 'reservation', v_spec->'reservation',
    'unique', (v_spec->'unique') - 'scope', 'needs', v_spec->'needs', 'parent', v_spec->'parent', 'batch', v_spec->'batch',
    'fresh', case when not options ? 'id' then true end)) || jsonb_build_object('body', v_body);
  v_others := array(select distinct o from (select n->>'queue' as o from jsonb_array_elements(coalesce(v_spec->'needs', '[]')) n
    union all select v_spec->'parent'->>'queue' union all select v_spec->'batch'->>'queue') r where o is not null and o <> queue);
  if not v_spec ?| array['needs', 'parent', 'batch'] then
    return coalesce((select a.existing from crore.add_here(null, false, queue, jsonb_build_array(v_job), not v_spec ? 'unique', v_others, null, null) a),
      v_job->>'id');
  end if;
  begin
    select a.existing into v_existing from crore.add_here(null, false, queue, jsonb_build_array(v_job), false, v_others, null, null) a;
  exception when sqlstate 'CR001' then
    select a.existing into v_existing from crore.add_here(null, true, queue, jsonb_build_array(v_job), false, v_others, null, null) a;
  end;
  return coalesce(v_existing, v_job->>'id');
end $$;
