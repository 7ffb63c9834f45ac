-- The counters of a queue: see the table. To be called with the queue locked.

create function crore.counts(p_queue int) returns crore.counters language plpgsql as $$
declare
  v crore.counters;
begin
  select * into v from crore.counters where queue = p_queue order by version desc limit 1;
  if found then return v; end if;
  return row(p_queue, 0, '0'::xid8, 0, 0, null, 0, 0, 0, 0, 0, 0, 0, false, 0, 0, '', 0, 0, 0, 0, 0, 0, 0)::crore.counters;
end $$;

-- Adds to the counters, and sets what is not null. The first change of a transaction inserts a version; every 64th one removes the old ones.
create function crore.bump(
  p_queue int, blocked bigint default 0, scheduled bigint default 0, ready bigint default 0, active bigint default 0, done bigint default 0,
  dead bigint default 0, cancelled bigint default 0, tasks bigint default 0, bytes bigint default 0, grouped bigint default 0,
  claims bigint default 0, dropped bigint default 0, hungry boolean default null, swept bigint default null, opened bigint default null,
  started bigint default null, failed bigint default null, broken bigint default null, trial text default null
) returns void language plpgsql as $$
#variable_conflict use_column
declare
  c crore.counters := crore.counts(p_queue);
  v_cleaned bigint := c.cleaned;
begin
  if c.xact = pg_current_xact_id() then
    update crore.counters k set
      blocked = k.blocked + bump.blocked, scheduled = k.scheduled + bump.scheduled, ready = k.ready + bump.ready,
      active = k.active + bump.active, done = k.done + bump.done, dead = k.dead + bump.dead, cancelled = k.cancelled + bump.cancelled,
      tasks = k.tasks + bump.tasks, bytes = k.bytes + bump.bytes, grouped = k.grouped + bump.grouped, claims = k.claims + bump.claims,
      dropped = k.dropped + bump.dropped, hungry = coalesce(bump.hungry, k.hungry), swept = coalesce(bump.swept, k.swept),
      opened = coalesce(bump.opened, k.opened), started = coalesce(bump.started, k.started),
      failed = coalesce(bump.failed, k.failed), broken = coalesce(bump.broken, k.broken), trial = coalesce(bump.trial, k.trial)
    where k.queue = p_queue and k.version = c.version;
    return;
  end if;
  if c.age % 64 = 63 then
    delete from crore.counters k where k.queue = p_queue and k.version >= c.cleaned and k.version < c.version;
    v_cleaned := c.version;
  end if;
  insert into crore.counters values (
    p_queue, nextval('crore.versions'), pg_current_xact_id(), (c.age + 1) % 1000000, v_cleaned, coalesce(bump.swept, c.swept),
    c.claims + bump.claims, c.bytes + bump.bytes, c.tasks + bump.tasks, c.grouped + bump.grouped, coalesce(bump.opened, c.opened),
    coalesce(bump.started, c.started), c.dropped + bump.dropped, coalesce(bump.hungry, c.hungry), coalesce(bump.failed, c.failed),
    coalesce(bump.broken, c.broken), coalesce(bump.trial, c.trial), c.blocked + bump.blocked,
    c.scheduled + bump.scheduled, c.ready + bump.ready, c.active + bump.active, c.done + bump.done, c.dead + bump.dead,
    c.cancelled + bump.cancelled);
end $$;

-- The same for one state, by its number.
create function crore.bump_state(p_queue int, p_state int, p_by bigint) returns void language plpgsql as $$
begin
  case p_state
    when 0 then perform crore.bump(p_queue, blocked => p_by);
    when 1 then perform crore.bump(p_queue, scheduled => p_by);
    when 2 then perform crore.bump(p_queue, ready => p_by);
    when 3 then perform crore.bump(p_queue, active => p_by);
    when 4 then perform crore.bump(p_queue, done => p_by);
    when 5 then perform crore.bump(p_queue, dead => p_by);
    else perform crore.bump(p_queue, cancelled => p_by);
  end case;
end $$;

create function crore.count_of(c crore.counters, p_state int) returns bigint language sql immutable as $$
  select case p_state when 0 then c.blocked when 1 then c.scheduled when 2 then c.ready when 3 then c.active when 4 then c.done
    when 5 then c.dead else c.cancelled end
$$;
