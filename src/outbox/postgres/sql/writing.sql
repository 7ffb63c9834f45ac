-- Writing jobs into the outbox, in transactions of the application. Writers do not wait for each other, nor for relays.

create function crore.time() returns bigint language sql as $$
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint
$$;

-- Tells two servers, databases or schemas apart.
create function crore.identity() returns text language sql stable as $$
  select concat_ws('.', (select system_identifier from pg_control_system()), (select oid from pg_database where datname = current_database()),
    'crore.outbox_rows'::regclass::oid)
$$;

-- A transaction notifies once, however often it calls this.
create function crore.wake_relays() returns void language plpgsql as $$
begin
  perform pg_notify(:'channel', '["","w",""]');
end $$;

-- addIn of the library. p_call: store (identity), format, queue, and jobs: id, priority, at or delay, spec, size, body or bytes (base64).
create function crore.write_in(p_call jsonb) returns jsonb language plpgsql as $$
declare
  v_now bigint := crore.time();
begin
  if crore.identity() <> p_call->>'store' then
    raise exception 'the connection is to another server or database, with an outbox of its own' using errcode = 'CR006';
  end if;
  if (select max(version) from crore.outbox_format) <> (p_call->>'format')::int then
    raise exception 'the outbox has another format now: %', (select max(version) from crore.outbox_format) using errcode = 'CR007';
  end if;
  insert into crore.outbox_rows (queue, id, priority, created, at, spec, size, body, bytes)
    select p_call->>'queue', j->>'id', (j->>'priority')::int, v_now, coalesce((j->>'at')::bigint, v_now + (j->>'delay')::bigint), coalesce(j->>'spec', ''),
      (j->>'size')::int, j->>'body', decode(j->>'bytes', 'base64')
    from jsonb_array_elements(p_call->'jobs') with ordinality e(j, place) order by place;
  perform crore.wake_relays();
  return 'true';
end $$;

-- For everybody who can call SQL, triggers too: writes one job; returns its id. The options are those of the library, except `needs`.
create function crore.add(queue text, payload jsonb, options jsonb default '{}') returns text language plpgsql as $$
declare
  v_now bigint := crore.time();
  v_body text := coalesce(payload, 'null')::text;
  v_spec jsonb;
  v_id text;
begin
  perform crore.name_option(to_jsonb(queue), 'queue name');
  if options ? 'needs' then perform crore.refuse('outbox: a job cannot have ''needs'': those jobs may be removed before it is sent'); end if;
  perform crore.check_options(options, array['id', 'idWindow', 'delay', 'at', 'priority', 'attempts', 'retryFor', 'backoff', 'reservation', 'unique',
    'expires', 'keep', 'keepDead', 'group', 'headers', 'batch', 'parent'], 'add');
  options := jsonb_strip_nulls(options);
  if options ? 'delay' and options ? 'at' then perform crore.refuse('add: give ''delay'' or ''at'', not both'); end if;
  if octet_length(v_body) > 1048576 then
    perform crore.refuse(format('payload for queue ''%s'' is %s bytes, the limit is 1048576', queue, octet_length(v_body)));
  end if;
  v_spec := crore.spec_of(queue, options, v_now);
  v_id := case when options ? 'id' then crore.name_option(options->'id', 'job id') else crore.new_id() end;
  insert into crore.outbox_rows (queue, id, priority, created, at, spec, size, body)
    values (queue, v_id, coalesce(crore.number_option(options->'priority', 'priority', -1000000, 1000000, true), 0), v_now,
      coalesce(crore.moment_option(options->'at', 'at'), v_now + crore.duration_option(options->'delay', 'delay')),
      coalesce(nullif(v_spec, '{}')::text, ''), octet_length(v_body), v_body);
  perform crore.wake_relays();
  return v_id;
end $$;
