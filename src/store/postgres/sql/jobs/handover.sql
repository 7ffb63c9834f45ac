-- Adding for a worker that waits in the same process: its claim is part of the call. The rows are those of `claim`; none if nothing was added. The transaction does
-- not wait for the disk, the caller does so on the same connection, with wait_for_disk.

create function crore.push_and_claim(
  p_now bigint, p_name text, p_bytes bytea, p_lengths int[], p_most bigint, p_max_bytes bigint, p_worker text, p_lease bigint, p_want int, p_nonce text
) returns table (
  status text, more boolean, next_at bigint, now bigint, token text, n bigint, id text, priority int, attempt int, crashes int, created bigint, ran text,
  spec text, body text, bytes bytea, task bytea
) language plpgsql as $$
#variable_conflict use_column
begin
  if not crore.push(p_now, p_name, p_bytes, p_lengths, p_most, p_max_bytes, true) then return; end if;
  return query select * from crore.claim(p_now, p_name, p_worker, p_lease, p_want, p_nonce);
  perform crore.wake_others(p_name);
end $$;

create function crore.add_and_claim(
  p_now bigint, p_name text, p_ids text[], p_bodies text[], p_spec text, p_traits jsonb, p_known boolean, p_most bigint, p_bytes bigint,
  p_worker text, p_lease bigint, p_want int, p_nonce text
) returns table (
  status text, more boolean, next_at bigint, now bigint, token text, n bigint, id text, priority int, attempt int, crashes int, created bigint, ran text,
  spec text, body text, bytes bytea, task bytea
) language plpgsql as $$
#variable_conflict use_column
begin
  if not crore.add_plain(p_now, p_name, p_ids, p_bodies, p_spec, p_traits, p_known, p_most, p_bytes, true) then return; end if;
  return query select * from crore.claim(p_now, p_name, p_worker, p_lease, p_want, p_nonce);
  perform crore.wake_others(p_name);
end $$;

-- Signals work that the claim has left, unless no other worker waits.
create function crore.wake_others(p_name text) returns void language plpgsql as $$
declare
  c crore.counters := crore.counts((select q.n from crore.queues q where q.name = p_name));
begin
  if c.hungry and c.ready > 0 then perform crore.wake(c.queue); end if;
end $$;
