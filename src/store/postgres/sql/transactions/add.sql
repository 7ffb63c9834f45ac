-- For everybody who can call SQL: adds one job in the current transaction.

-- See lib/traits.sql.
create function crore.traits_of(p_spec jsonb) returns jsonb language sql as $$
  select nullif(jsonb_strip_nulls(jsonb_build_object(
    'done', case when p_spec->'keep'->'done' <> '{"ms": 3600000, "count": 1000}' then jsonb_build_array(p_spec->'keep'->'done'->'ms', p_spec->'keep'->'done'->'count') end,
    'dead', case when p_spec->'keep'->'dead' <> '{"ms": 2592000000, "count": 100000}' then jsonb_build_array(p_spec->'keep'->'dead'->'ms', p_spec->'keep'->'dead'->'count') end,
    'key', p_spec->'unique'->'key', 'scope', p_spec->'unique'->'scope', 'window', p_spec->'idWindow')), '{}')
$$;

-- Adds a job to a queue in the current transaction; returns its id, or that of the job that is there already. The options are those of the library.
create function crore.add(queue text, payload jsonb, options jsonb default '{}') returns text language plpgsql
set lock_timeout = '20s' set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
  v_now bigint := crore.time(null);
  v_body text := coalesce(payload, 'null')::text;
  v_spec jsonb;
  v_named boolean;
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
  v_named := v_spec = '{"idWindow": 3600000}';
  v_job := jsonb_strip_nulls(jsonb_build_object(
    'id', case when options ? 'id' then crore.name_option(options->'id', 'job id') else crore.new_id() end,
    'size', octet_length(v_body), 'priority', coalesce(crore.number_option(options->'priority', 'priority', -1000000, 1000000, true), 0),
    'at', crore.moment_option(options->'at', 'at'), 'delay', crore.duration_option(options->'delay', 'delay'),
    'spec', case when v_named then '=' else nullif(v_spec, '{}')::text end, 'traits', case when not v_named then crore.traits_of(v_spec) end, 'group', v_spec->'group', 'reservation', v_spec->'reservation',
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
