-- The options of `add`, checked as src/engine/input/options.ts does, for those who call it from SQL.

create function crore.refuse(p_message text) returns void language plpgsql as $$
begin
  raise exception '%', p_message using errcode = 'CR010';
end $$;

create function crore.check_options(p_options jsonb, p_known text[], p_what text) returns void language plpgsql as $$
declare
  v_key text;
begin
  if jsonb_typeof(p_options) is distinct from 'object' then
    perform crore.refuse(format('%s must be an object, not %s', p_what, coalesce(p_options::text, 'null')));
  end if;
  for v_key in select jsonb_object_keys(p_options) loop
    if not v_key = any(p_known) then
      perform crore.refuse(format('%s: unknown option ''%s'' (known: %s)', p_what, v_key, array_to_string(p_known, ', ')));
    end if;
  end loop;
end $$;

create function crore.name_option(p_value jsonb, p_what text) returns text language plpgsql as $$
declare
  v_text text := p_value #>> '{}';
begin
  if jsonb_typeof(p_value) is distinct from 'string' then
    perform crore.refuse(format('%s must be a string, not %s', p_what, coalesce(p_value::text, 'null')));
  elsif v_text = '' then
    perform crore.refuse(format('%s must not be empty', p_what));
  elsif char_length(v_text) > 512 then
    perform crore.refuse(format('%s ''%s…'' is longer than 512 characters', p_what, left(v_text, 40)));
  end if;
  return v_text;
end $$;

-- Null if it is not given.
create function crore.number_option(p_value jsonb, p_what text, p_low numeric, p_high numeric, p_whole boolean) returns numeric language plpgsql as $$
declare
  v_number numeric;
begin
  if p_value is null then return null; end if;
  if jsonb_typeof(p_value) = 'number' then v_number := (p_value #>> '{}')::numeric; end if;
  if v_number is null or v_number not between p_low and p_high or (p_whole and v_number <> trunc(v_number)) then
    perform crore.refuse(format('%s must be a %s, %s to %s, not %s', p_what, case when p_whole then 'whole number' else 'number' end, p_low, p_high, p_value));
  end if;
  return v_number;
end $$;

create function crore.one_of(p_value jsonb, p_what text, p_known text[]) returns text language plpgsql as $$
begin
  if jsonb_typeof(p_value) is distinct from 'string' or not (p_value #>> '{}') = any(p_known) then
    perform crore.refuse(format('%s must be one of %s, not %s', p_what, array_to_string(p_known, ', '), coalesce(p_value::text, 'null')));
  end if;
  return p_value #>> '{}';
end $$;

-- Milliseconds, or a text such as 250ms, 10s, 5m, 2h, 1d. Null if it is not given.
create function crore.duration_option(p_value jsonb, p_what text) returns bigint language plpgsql as $$
declare
  v_parts text[];
  v_ms numeric;
begin
  if p_value is null then return null; end if;
  if jsonb_typeof(p_value) = 'number' then
    v_ms := (p_value #>> '{}')::numeric;
  elsif jsonb_typeof(p_value) = 'string' then
    v_parts := regexp_match(p_value #>> '{}', '^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*$');
    v_ms := v_parts[1]::numeric * case v_parts[2] when 'ms' then 1 when 's' then 1000 when 'm' then 60000 when 'h' then 3600000 else 86400000 end;
  end if;
  if v_ms is null or v_ms not between 0 and 3153600000000 then
    perform crore.refuse(format('%s: %s is not a duration: use milliseconds or a string such as ''10s'' or ''5m''', p_what, p_value));
  end if;
  return round(v_ms);
end $$;

-- Milliseconds since 1970, or a timestamp. Null if it is not given.
create function crore.moment_option(p_value jsonb, p_what text) returns bigint language plpgsql as $$
declare
  v_ms numeric;
begin
  if p_value is null then return null; end if;
  if jsonb_typeof(p_value) = 'number' then
    v_ms := (p_value #>> '{}')::numeric;
  elsif jsonb_typeof(p_value) = 'string' then
    begin
      v_ms := extract(epoch from (p_value #>> '{}')::timestamptz) * 1000;
    exception when others then v_ms := null;
    end;
  end if;
  if v_ms is null or v_ms not between 0 and 8640000000000000 then
    perform crore.refuse(format('%s must be a timestamp or milliseconds since 1970, not %s', p_what, p_value));
  end if;
  return round(v_ms);
end $$;

create function crore.backoff_option(p_value jsonb) returns jsonb language plpgsql as $$
declare
  v_kind text;
begin
  if p_value is null then return null; end if;
  if jsonb_typeof(p_value) <> 'object' then
    return jsonb_build_object('kind', 'fixed', 'delay', crore.duration_option(p_value, 'backoff'));
  end if;
  v_kind := crore.one_of(p_value->'kind', 'backoff.kind', array['fixed', 'exponential', 'quartic']);
  if v_kind = 'fixed' then
    perform crore.check_options(p_value, array['kind', 'delay'], 'backoff');
    return jsonb_build_object('kind', v_kind, 'delay', crore.duration_option(coalesce(p_value->'delay', 'null'), 'backoff.delay'));
  elsif v_kind = 'exponential' then
    perform crore.check_options(p_value, array['kind', 'delay', 'factor', 'cap', 'jitter'], 'backoff');
    return jsonb_build_object('kind', v_kind, 'delay', coalesce(crore.duration_option(p_value->'delay', 'backoff.delay'), 1000),
      'factor', coalesce(crore.number_option(p_value->'factor', 'backoff.factor', 1, 100, false), 2),
      'cap', coalesce(crore.duration_option(p_value->'cap', 'backoff.cap'), 3600000),
      'jitter', coalesce(crore.number_option(p_value->'jitter', 'backoff.jitter', 0, 1, false), 0.2));
  end if;
  perform crore.check_options(p_value, array['kind', 'base', 'jitter', 'cap'], 'backoff');
  return jsonb_build_object('kind', v_kind, 'base', coalesce(crore.duration_option(p_value->'base', 'backoff.base'), 15000),
    'jitter', coalesce(crore.duration_option(p_value->'jitter', 'backoff.jitter'), 30000),
    'cap', coalesce(crore.duration_option(p_value->'cap', 'backoff.cap'), 2592000000));
end $$;

create function crore.unique_option(p_value jsonb) returns jsonb language plpgsql as $$
declare
  v_scope text;
  v_ttl bigint;
begin
  if p_value is null then return null; end if;
  if jsonb_typeof(p_value) = 'string' then
    return jsonb_build_object('key', crore.name_option(p_value, 'unique key'), 'scope', 'alive', 'ttl', 0);
  end if;
  perform crore.check_options(p_value, array['key', 'scope', 'ttl', 'mode'], 'unique');
  v_scope := crore.one_of(coalesce(p_value->'scope', '"alive"'), 'unique.scope', array['waiting', 'alive', 'window']);
  v_ttl := coalesce(crore.duration_option(p_value->'ttl', 'unique.ttl'), 0);
  if v_scope = 'window' and v_ttl = 0 then perform crore.refuse('unique.scope ''window'' needs a ttl'); end if;
  return jsonb_strip_nulls(jsonb_build_object('key', crore.name_option(p_value->'key', 'unique.key'), 'scope', v_scope, 'ttl', v_ttl,
    'mode', case when p_value ? 'mode' then crore.one_of(p_value->'mode', 'unique.mode', array['keep', 'extend', 'replace']) end));
end $$;

-- How long and how many ended jobs are kept, as {ms, count}.
create function crore.keep_option(p_value jsonb, p_what text, p_ms bigint, p_count bigint) returns jsonb language plpgsql as $$
begin
  if p_value is null then return jsonb_build_object('ms', p_ms, 'count', p_count); end if;
  perform crore.check_options(p_value, array['for', 'count'], p_what);
  return jsonb_build_object('ms', coalesce(crore.duration_option(p_value->'for', p_what || '.for'), p_ms),
    'count', coalesce(crore.number_option(p_value->'count', p_what || '.count', 0, 9007199254740991, true), p_count));
end $$;

create function crore.headers_option(p_value jsonb) returns jsonb language plpgsql as $$
declare
  h record;
  v_size int := 0;
begin
  if p_value is null then return null; end if;
  if jsonb_typeof(p_value) <> 'object' then perform crore.refuse(format('headers must be an object of strings, not %s', p_value)); end if;
  for h in select key, value from jsonb_each(p_value) loop
    if jsonb_typeof(h.value) <> 'string' then perform crore.refuse(format('header ''%s'' must be a string, not %s', h.key, h.value)); end if;
    v_size := v_size + octet_length(h.key) + octet_length(h.value #>> '{}');
  end loop;
  if v_size > 16384 then perform crore.refuse(format('headers are %s bytes, the limit is 16384', v_size)); end if;
  return p_value;
end $$;

create function crore.ref_option(p_value jsonb, p_what text) returns jsonb language plpgsql as $$
begin
  if p_value is null then return null; end if;
  perform crore.check_options(p_value, array['queue', 'id'], p_what);
  return jsonb_build_object('queue', crore.name_option(p_value->'queue', p_what || ': queue name'), 'id',
    crore.name_option(p_value->'id', p_what || ': job id'));
end $$;

create function crore.needs_option(p_value jsonb, p_queue text) returns jsonb language plpgsql as $$
declare
  v_need jsonb;
  v_all jsonb := '{}';
  v_one jsonb;
begin
  if p_value is null then return null; end if;
  if jsonb_typeof(p_value) <> 'array' then perform crore.refuse(format('needs must be an array, not %s', p_value)); end if;
  for v_need in select * from jsonb_array_elements(p_value) loop
    if jsonb_typeof(v_need) = 'string' then v_need := jsonb_build_object('id', v_need); end if;
    perform crore.check_options(v_need, array['id', 'queue', 'on'], 'needs');
    v_one := jsonb_build_object('queue', crore.name_option(coalesce(v_need->'queue', to_jsonb(p_queue)), 'needs: queue name'),
      'id', crore.name_option(v_need->'id', 'needs: job id'),
      'on', crore.one_of(coalesce(v_need->'on', '"success"'), 'needs.on', array['success', 'finished']));
    -- The last one counts if an upstream job is named twice.
    v_all := v_all || jsonb_build_object(jsonb_build_array(v_one->'queue', v_one->'id')::text, v_one);
  end loop;
  return nullif((select jsonb_agg(value) from jsonb_each(v_all)), '[]');
end $$;
