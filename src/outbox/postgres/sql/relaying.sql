-- What a relay does. Every function locks the row of its queue, so that relays follow each other.

-- The batch of a queue that is being sent, or the next one: at most p_rows rows and, after the first one, p_bytes bytes, of what is committed now. `waited`: how long ago
-- a row was written. It is remembered before it is sent: whoever sends it again, sends the same rows under the same position.
create function crore.take_batch(p_queue text, p_rows int, p_bytes bigint) returns table (
  source text, "from" text, "to" text, id text, priority int, waited bigint, at bigint, spec text, body text, bytes bytea
) language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  v crore.queues;
begin
  insert into crore.queues (queue) values (p_queue) on conflict (queue) do nothing;
  select * into v from crore.queues q where q.queue = p_queue for update;
  if v.batch is null then
    select array_agg(f.n order by f.n) into v.batch_rows from (
      select r.n, sum(r.size) over (order by r.n) as total, row_number() over (order by r.n) as place
      from (select n, size from crore.outbox_rows where queue = p_queue order by n limit p_rows) r) f
      where f.place = 1 or f.total <= p_bytes;
    if v.batch_rows is null then return; end if;
    v.batch := v.batch_rows[cardinality(v.batch_rows)] || '.' || left(replace(gen_random_uuid()::text, '-', ''), 16);
    update crore.queues q set batch = v.batch, batch_rows = v.batch_rows where q.queue = p_queue;
    -- The store must not know of a batch that a crash of this server makes us forget.
    if current_setting('synchronous_commit') = 'off' then perform set_config('synchronous_commit', 'on', true); end if;
  end if;
  return query select v.source, v.position, v.batch, r.id, r.priority, crore.time() - r.created, r.at, r.spec, r.body, r.bytes
    from crore.outbox_rows r where r.n = any(v.batch_rows) order by r.n;
end $$;

-- The batch has arrived. Nothing happens if that is known already.
create function crore.confirm_batch(p_queue text, p_source text, p_batch text) returns void language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
declare
  v crore.queues;
begin
  select * into v from crore.queues q where q.queue = p_queue for update;
  if v.source is distinct from p_source or v.batch is distinct from p_batch then return; end if;
  delete from crore.outbox_rows r where r.n = any(v.batch_rows);
  update crore.queues q set position = v.batch, batch = null, batch_rows = null where q.queue = p_queue;
end $$;

-- The store is at p_theirs, and not at p_from, where we were. If that is our batch, it has arrived; otherwise one of us was restored to an earlier state, and we begin again under a new
-- name: true.
create function crore.compare(p_queue text, p_source text, p_from text, p_theirs text) returns boolean language plpgsql as $$
declare
  v crore.queues;
begin
  select * into v from crore.queues q where q.queue = p_queue for update;
  if v.source is distinct from p_source or v.position <> p_from or v.position = p_theirs then return false; end if;
  if v.batch = p_theirs then
    perform crore.confirm_batch(p_queue, p_source, p_theirs);
    return false;
  end if;
  update crore.queues q set source = default, position = '', batch = null, batch_rows = null where q.queue = p_queue;
  return true;
end $$;
