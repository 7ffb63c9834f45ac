-- Groups of a queue: those that may start jobs take turns; one that may not leaves the rotation until it may. See src/store/sqlite/groups.ts.

-- When the rate window began and how many have started in it; a new window if the last one is over, or begins in the future.
create function crore.rate_window(p_opened bigint, p_started bigint, p_per bigint, p_now bigint, out opened bigint, out started bigint)
language sql immutable as $$
  select case when fresh then p_now else p_opened end, case when fresh then 0 else p_started end
  from (select p_started = 0 or p_now < p_opened or p_now >= p_opened + coalesce(p_per, 0) as fresh) w
$$;

-- The rules for each group of a queue. `ruled`: there are any. Without, groups only take turns: one with nothing waiting needs no row, and nobody counts
-- what runs, so that the end of a job changes nothing here.
create function crore.group_limits(p_queue int, out ruled boolean, out concurrency bigint, out rate bigint, out per bigint, out ordered boolean)
language plpgsql as $$
begin
  select limits is not null and limits ? 'group', (limits->'group'->>'concurrency')::bigint, (limits->'group'->'rate'->>'count')::bigint,
      (limits->'group'->'rate'->>'per')::bigint, coalesce(limits->'group' ? 'ordered', false)
    into ruled, concurrency, rate, per, ordered from crore.queues where n = p_queue;
end $$;

-- How many jobs a group may start, as far as its concurrency and its order are concerned; null is any number.
create function crore.group_slots(p_ordered boolean, p_concurrency bigint, p_holds int, p_held bigint) returns bigint language plpgsql as $$
begin
  if not p_ordered then return p_concurrency - p_holds; end if;
  if p_holds > 0 then return 0; end if;
  if p_held is not null and not exists (select 1 from crore.jobs where n = p_held and state = 2) then return 0; end if;
  return 1;
end $$;

-- The shelf on which a group belongs; see the table. `l`: the limits.
create function crore.shelf_of(
  p_waiting int, p_holds int, p_held bigint, p_opened bigint, p_started bigint, l record, p_now bigint
) returns smallint language plpgsql as $$
begin
  if p_waiting = 0 then return 0; end if;
  if not l.ruled then return 1; end if;
  if crore.group_slots(l.ordered, l.concurrency, p_holds, p_held) <= 0 then return 2; end if;
  return case when (select started from crore.rate_window(p_opened, p_started, l.per, p_now)) >= l.rate then 3 else 1 end;
end $$;

-- Puts a group where it belongs now, last in the rotation if it may start jobs.
create function crore.place_group(p_queue int, p_name text, p_now bigint) returns void language plpgsql as $$
declare
  l record;
begin
  select * into l from crore.group_limits(p_queue);
  update crore.groups g set shelf = crore.shelf_of(g.waiting, g.holds, g.held, g.opened, g.started, l, p_now), turn = nextval('crore.turns'),
    rests = g.opened + coalesce(l.per, 0) where g.queue = p_queue and g.name = p_name;
end $$;

-- Jobs of these groups have become ready, so many of each. One statement for all groups: a few for each would cost several times as much.
create function crore.enter_groups(p_queue int, p_names text[], p_counts int[], p_now bigint) returns void language plpgsql as $$
declare
  l record;
begin
  if coalesce(cardinality(p_names), 0) = 0 then return; end if;
  select * into l from crore.group_limits(p_queue);
  insert into crore.groups as g (queue, name, waiting, shelf, turn)
    select p_queue, u.name, u.count, 1, nextval('crore.turns') from unnest(p_names, p_counts) u(name, count)
    on conflict (queue, name) do update set waiting = g.waiting + excluded.waiting, turn = case when g.shelf = 0 then excluded.turn else g.turn end,
      rests = case when g.shelf = 0 then g.opened + coalesce(l.per, 0) else g.rests end,
      shelf = case when g.shelf = 0 then crore.shelf_of(excluded.waiting, g.holds, g.held, g.opened, g.started, l, p_now) else g.shelf end;
  perform crore.bump(p_queue, grouped => (select sum(c) from unnest(p_counts) c));
end $$;

-- The same for one job, which its group may hold.
create function crore.enter_group(p_queue int, p_name text, p_now bigint, p_job bigint default null) returns void language plpgsql as $$
begin
  perform crore.enter_groups(p_queue, array[p_name], array[1], p_now);
  if exists (select 1 from crore.groups where queue = p_queue and name = p_name and shelf = 2 and held = p_job) then
    perform crore.place_group(p_queue, p_name, p_now);
  end if;
end $$;

-- A job that has started waits again: in an ordered group, no other job may start before it has ended.
create function crore.hold_group(p_queue int, p_name text, p_job bigint) returns void language plpgsql as $$
begin
  if p_name is null or not (select ordered from crore.group_limits(p_queue)) then return; end if;
  insert into crore.groups as g (queue, name, held) values (p_queue, p_name, p_job)
    on conflict (queue, name) do update set held = coalesce(g.held, excluded.held);
end $$;

-- Whether the group waits for this job, which waits itself.
create function crore.is_held_by_group(p_queue int, p_name text, p_job bigint) returns boolean language sql as $$
  select p_name is not null and (select ordered from crore.group_limits(p_queue))
    and exists (select 1 from crore.groups where queue = p_queue and name = p_name and held = p_job)
$$;

-- The place of a job that becomes ready: at the front if its group waits for it.
create function crore.new_place(p_queue int, p_name text, p_job bigint) returns bigint language plpgsql as $$
begin
  if crore.is_held_by_group(p_queue, p_name, p_job) then return -nextval('crore.fronts'); end if;
  return nextval('crore.backs');
end $$;

-- A waiting job has ended or left: if the group held it, others may start. Returns whether it did.
create function crore.let_go(p_queue int, p_name text, p_job bigint, p_now bigint) returns boolean language plpgsql as $$
declare
  v_shelf int;
begin
  if not crore.is_held_by_group(p_queue, p_name, p_job) then return false; end if;
  update crore.groups set held = null where queue = p_queue and name = p_name returning shelf into v_shelf;
  if v_shelf = 2 then perform crore.place_group(p_queue, p_name, p_now); end if;
  return true;
end $$;

-- A ready job of the group is gone. A group with nothing waiting stays in the rotation until its turn comes.
create function crore.leave_group(p_queue int, p_name text) returns void language plpgsql as $$
begin
  update crore.groups set waiting = waiting - 1 where queue = p_queue and name = p_name;
  perform crore.bump(p_queue, grouped => -1);
end $$;

-- Leases of these groups have ended, so many of each: one that was at its limit may start more jobs.
create function crore.release_groups(p_queue int, p_names text[], p_counts int[], p_now bigint) returns void language plpgsql as $$
declare
  l record;
begin
  if coalesce(cardinality(p_names), 0) = 0 then return; end if;
  select * into l from crore.group_limits(p_queue);
  if not l.ruled then return; end if;
  update crore.groups g set holds = greatest(0, g.holds - u.count), turn = case when g.shelf = 2 then u.turn else g.turn end,
      rests = case when g.shelf = 2 then g.opened + coalesce(l.per, 0) else g.rests end,
      shelf = case when g.shelf = 2 then crore.shelf_of(g.waiting, greatest(0, g.holds - u.count), g.held, g.opened, g.started, l, p_now) else g.shelf end
    from (select name, count, nextval('crore.turns') as turn from unnest(p_names, p_counts) n(name, count) offset 0) u
    where g.queue = p_queue and g.name = u.name;
end $$;

create function crore.release_group(p_queue int, p_name text, p_now bigint) returns void language sql as $$
  select crore.release_groups(p_queue, array[p_name], array[1], p_now)
$$;

-- Counts what runs in each group, if there are rules now, and forgets it if there are none.
create function crore.count_holds(p_queue int) returns void language plpgsql as $$
begin
  update crore.groups set holds = 0 where queue = p_queue and holds > 0;
  if not (select ruled from crore.group_limits(p_queue)) then return; end if;
  insert into crore.groups as g (queue, name, holds) select p_queue, j.grp, count(*) from crore.jobs j
    where j.queue = p_queue and j.state = 3 and j.grp is not null group by j.grp on conflict (queue, name) do update set holds = excluded.holds;
end $$;

-- Groups whose rate window has opened return to the rotation.
create function crore.reopen_groups(p_queue int, p_now bigint) returns void language plpgsql as $$
declare
  r record;
begin
  for r in select name from crore.groups where queue = p_queue and shelf = 3 and rests <= p_now order by rests, name limit 1000 loop
    perform crore.place_group(p_queue, r.name, p_now);
  end loop;
end $$;

-- Whether any group may start a job. Groups at the head of the rotation whose jobs are all gone leave it.
create function crore.any_turn(p_queue int, p_now bigint) returns boolean language plpgsql as $$
declare
  v_from bigint := (crore.counts(p_queue)).turns_from;
  v_seen int := 0;
  r record;
begin
  for r in select name, waiting from crore.groups where queue = p_queue and shelf = 1 and turn >= v_from order by turn, name limit 1000 loop
    if r.waiting > 0 then return true; end if;
    perform crore.place_group(p_queue, r.name, p_now);
    v_seen := v_seen + 1;
  end loop;
  return v_seen = 1000;
end $$;

-- How many starts each group gets, if it may have so many: one after the other, until all are given.
create function crore.deal_turns(p_mosts int[], p_want int) returns int[] language plpgsql immutable as $$
declare
  v_given int[] := array_fill(0, array[cardinality(p_mosts)]);
  v_left int := p_want;
  v_before int;
begin
  loop
    v_before := v_left;
    for i in 1 .. cardinality(p_mosts) loop
      exit when v_left = 0;
      continue when v_given[i] = p_mosts[i];
      v_given[i] := v_given[i] + 1;
      v_left := v_left - 1;
    end loop;
    if v_left = 0 or v_left = v_before then return v_given; end if;
  end loop;
end $$;

-- Takes the turns of up to `p_want` starts, one from each group after the other; returns the numbers of their jobs in this order.
create function crore.take_turns(p_queue int, p_want int, p_now bigint) returns bigint[] language plpgsql as $$
declare
  c crore.counters := crore.counts(p_queue);
  l record;
  r record;
  v_names text[] := '{}';
  v_helds bigint[] := '{}';
  v_mosts int[] := '{}';
  v_places tid[] := '{}';
  v_given int[];
  v_jobs bigint[];
  v_most bigint;
begin
  if p_want <= 0 or c.grouped = 0 then return '{}'; end if;
  select * into l from crore.group_limits(p_queue);
  for r in select g.ctid, g.name, g.waiting, g.holds, g.held, g.opened, g.started, g.turn from crore.groups g
      where g.queue = p_queue and g.shelf = 1 and g.turn >= c.turns_from order by g.turn, g.name limit p_want + 1000 loop
    exit when cardinality(v_names) >= p_want;
    c.turns_from := r.turn;
    v_most := r.waiting;
    if l.ruled then
      v_most := least(v_most, crore.group_slots(l.ordered, l.concurrency, r.holds, r.held),
        l.rate - (select w.started from crore.rate_window(r.opened, r.started, l.per, p_now) w));
    end if;
    if v_most <= 0 then
      perform crore.place_group(p_queue, r.name, p_now);
      continue;
    end if;
    v_names := v_names || r.name;
    v_helds := v_helds || r.held;
    v_mosts := v_mosts || v_most::int;
    v_places := v_places || r.ctid;
  end loop;
  if cardinality(v_names) = 0 then return '{}'; end if;
  v_given := crore.deal_turns(v_mosts, p_want);
  select array_agg(j.n order by j.nth, u.place) into v_jobs from unnest(v_names, v_given, v_helds) with ordinality u(name, given, held, place)
    cross join lateral unnest(case when u.held is not null then array[u.held] else array(select k.n from crore.jobs k
      where k.queue = p_queue and k.state = 2 and k.grp = u.name order by k.priority desc, k.seq limit u.given) end) with ordinality j(n, nth);
  c.grouped := c.grouped - cardinality(v_jobs);
  perform crore.save(c);
  perform crore.end_turns(v_places, v_given, l, p_now);
  return v_jobs;
end $$;

-- These groups have started so many jobs. Those that may start more go behind all others, in the order of their turns.
create function crore.end_turns(p_places tid[], p_given int[], l record, p_now bigint) returns void language plpgsql as $$
begin
  if not l.ruled then
    delete from crore.groups g using unnest(p_places, p_given) u(place, given) where g.ctid = u.place and g.waiting = u.given;
  end if;
  update crore.groups g set waiting = g.waiting - u.given, holds = case when l.ruled then g.holds + u.given else 0 end, held = null, opened = w.opened,
      started = w.started + u.given, rests = w.opened + coalesce(l.per, 0), turn = u.turn,
      shelf = crore.shelf_of(g.waiting - u.given, g.holds + u.given, null, w.opened, w.started + u.given, l, p_now)
    from (select o.place, o.given, nextval('crore.turns') as turn from (select * from unnest(p_places, p_given) with ordinality i(place, given, nth)
        order by i.given, i.nth) o offset 0) u
      cross join lateral (select b.ctid, w.opened, w.started from crore.groups b cross join lateral crore.rate_window(b.opened, b.started, l.per, p_now) w
        where b.ctid = u.place) w
    where g.ctid = u.place;
end $$;
