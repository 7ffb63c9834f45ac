-- The breaker of a queue: see the contract.

-- Counts the outcome of an entry (p_success is null if it counts as neither); returns what happened to the breaker: open, closed, or nothing. While it
-- is open, only the entry that it let through decides.
create function crore.count_outcome(p_queue int, p_now bigint, p_token text, p_success boolean) returns text[] language plpgsql as $$
declare
  v_breaker jsonb := (select breaker from crore.queues where n = p_queue);
  c crore.counters;
  v_trial boolean;
begin
  if v_breaker is null or p_success is null then return '{}'; end if;
  c := crore.counts(p_queue);
  v_trial := c.broken > 0 and c.trial <> '' and coalesce(c.trial = p_token, false);
  if c.broken > 0 and not v_trial then return '{}'; end if;
  if p_success then
    if c.failed > 0 or c.broken > 0 then perform crore.bump(p_queue, failed => 0, broken => 0, trial => ''); end if;
    return case when c.broken > 0 then array['closed'] else '{}' end;
  end if;
  if not v_trial and c.failed + 1 < (v_breaker->>'failures')::bigint then
    perform crore.bump(p_queue, failed => c.failed + 1);
    return '{}';
  end if;
  perform crore.bump(p_queue, failed => c.failed + 1, broken => p_now + (v_breaker->>'pause')::bigint, trial => '');
  return array['open'];
end $$;

create function crore.breaker_events(p_queue int, p_now bigint, p_events text[]) returns void language plpgsql as $$
begin
  for i in 1 .. cardinality(p_events) loop
    perform crore.event(p_queue, p_now, 'breaker', '', p_events[i]);
  end loop;
end $$;
