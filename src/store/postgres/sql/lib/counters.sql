-- The counters of a queue: see the table. To be called with the queue locked.

create function crore.counts(p_queue int) returns crore.counters language plpgsql as $$
declare
  v crore.counters;
begin
  select * into v from crore.counters where queue = p_queue order by version desc limit 1;
  if not found then v := crore.no_counts(p_queue); end if;
  return v;
end $$;

-- The counters of a queue that has none yet.
create function crore.no_counts(p_queue int) returns crore.counters language plpgsql as $$
declare
  v crore.counters;
begin
  v.queue := p_queue; v.version := 0; v.age := 0; v.cleaned := 0; v.claims := 0; v.bytes := 0; v.tasks := 0; v.grouped := 0;
  v.opened := 0; v.started := 0; v.dropped := 0; v.hungry := false; v.failed := 0; v.broken := 0; v.trial := ''; v.fresh := 0; v.head := 0;
  v.lanes := '{}'; v.fronts := '{}'; v.backs := '{}'; v.due := 0; v.done_from := 0; v.task_front := 0; v.task_back := 0; v.awaited := 0; v.turns_from := 0;
  v.blocked := 0; v.scheduled := 0; v.ready := 0; v.active := 0; v.done := 0; v.dead := 0; v.cancelled := 0;
  return v;
end $$;

-- Writes changed counters as a new version; every 64th one removes the old ones.
create function crore.save(c crore.counters) returns void language plpgsql as $$
begin
  if c.age % 64 = 63 then
    delete from crore.counters k where k.queue = c.queue and k.version >= c.cleaned and k.version < c.version;
    c.cleaned := c.version;
  end if;
  c.version := c.version + 1;
  c.age := (c.age + 1) % 1000000;
  insert into crore.counters values (c.*);
end $$;

-- Adds to the counters, and sets what is not null. More jobs of a kind that has a lower bound: the bound is unknown unless the caller says that it
-- is right (`placed` for ready jobs) or what it may be (`due`, `done_from`).
create function crore.bump(
  p_queue int, blocked bigint default 0, scheduled bigint default 0, ready bigint default 0, active bigint default 0, done bigint default 0,
  dead bigint default 0, cancelled bigint default 0, tasks bigint default 0, bytes bigint default 0, grouped bigint default 0,
  claims bigint default 0, dropped bigint default 0, hungry boolean default null, swept bigint default null, opened bigint default null,
  started bigint default null, failed bigint default null, broken bigint default null, trial text default null, fresh bigint default 0,
  awaited bigint default 0, placed boolean default false, due bigint default 0, done_from bigint default 0
) returns void language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
begin
  if ready > 0 and not placed then c.lanes := null; end if;
  if scheduled > 0 then c.due := case when c.scheduled = 0 then due else least(c.due, due) end; end if;
  if done > 0 then c.done_from := case when c.done = 0 then done_from else least(c.done_from, done_from) end; end if;
  c.blocked := c.blocked + blocked;
  c.scheduled := c.scheduled + scheduled;
  c.ready := c.ready + ready;
  c.active := c.active + active;
  c.done := c.done + done;
  c.dead := c.dead + dead;
  c.cancelled := c.cancelled + cancelled;
  c.tasks := c.tasks + tasks;
  c.bytes := c.bytes + bytes;
  c.grouped := c.grouped + grouped;
  c.claims := c.claims + claims;
  c.dropped := c.dropped + dropped;
  c.fresh := c.fresh + fresh;
  c.awaited := greatest(0, c.awaited + awaited);
  c.hungry := coalesce(hungry, c.hungry);
  c.swept := coalesce(swept, c.swept);
  c.opened := coalesce(opened, c.opened);
  c.started := coalesce(started, c.started);
  c.failed := coalesce(failed, c.failed);
  c.broken := coalesce(broken, c.broken);
  c.trial := coalesce(trial, c.trial);
  perform crore.save(c);
end $$;

-- The same for one state, by its number.
create function crore.bump_state(p_queue int, p_state int, p_by bigint, placed boolean default false, due bigint default 0) returns void
language plpgsql as $$
begin
  case p_state
    when 0 then perform crore.bump(p_queue, blocked => p_by);
    when 1 then perform crore.bump(p_queue, scheduled => p_by, due => bump_state.due);
    when 2 then perform crore.bump(p_queue, ready => p_by, placed => bump_state.placed);
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
