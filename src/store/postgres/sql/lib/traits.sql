-- The options of a job that matter at its end. Written only where they differ from the defaults of src/job/spec.ts:
-- {"done": [ms, count], "dead": [ms, count], "key": unique key, "scope": its scope, "window": how long the id stays taken}.

create function crore.keep_ms(p_traits jsonb, p_state int) returns bigint language sql immutable as $$
  select case when p_state = 5 then coalesce((p_traits->'dead'->>0)::bigint, 2592000000)
    else coalesce((p_traits->'done'->>0)::bigint, 3600000) end
$$;

create function crore.keep_count(p_traits jsonb, p_state int) returns bigint language sql immutable as $$
  select case when p_state = 5 then coalesce((p_traits->'dead'->>1)::bigint, 100000)
    else coalesce((p_traits->'done'->>1)::bigint, 1000) end
$$;

create function crore.free_key(p_queue int, p_key text, p_id text) returns void language sql as $$
  delete from crore.keys where queue = p_queue and key = p_key and id = p_id
$$;

-- Of a stored job: the two most common options have a short name in `spec`, and no traits.
create function crore.traits(p_spec text, p_traits jsonb) returns jsonb language sql immutable as $$
  select case p_spec when '-' then '{"done": [0, 0]}' when '=' then '{"window": 3600000}' else p_traits end
$$;
