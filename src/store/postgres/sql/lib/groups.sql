-- Groups of a queue: those that may start jobs take turns; one that may not leaves the rotation until it may. See src/store/sqlite/groups.ts.

-- When the rate window began and how many have started in it; a new window if the last one is over, or begins in the future.
create function crore.rate_window(p_opened bigint, p_started bigint, p_per bigint, p_now bigint, out opened bigint, out started bigint)
language sql immutable as $$
  select case when fresh then p_now else p_opened end, case when fresh then 0 else p_started end
  from (select p_started = 0 or p_now < p_opened or p_now >= p_opened + coalesce(p_per, 0) as fresh) w
$$;

create function crore.group_limits(p_queue int, out concurrency bigint, out rate bigint, out per bigint, out ordered boolean) language sql as $$
  select (limits->'group'->>'concurrency')::bigint, (limits->'group'->'rate'->>'count')::bigint, (limits->'group'->'rate'->>'per')::bigint,
    coalesce(limits->'group' ? 'ordered', false)
  from crore.queues where n = p_queue
$$;

-- How many jobs a group may start, as far as its concurrency and its order are concerned; null is any number.
create function crore.group_slots(p_ordered boolean, p_concurrency bigint, p_holds int, p_held bigint) returns bigint language plpgsql as $$
begin
  if not p_ordered then return p_concurrency - p_holds; end if;
  if p_holds > 0 then return 0; end if;
  if p_held is not null and not exists (select 1 from crore.jobs where n = p_held and state = 2) then return 0; end if;
  return 1;
end $$;

-- Puts a group where it belongs now, last in the rotation if it may start jobs.
create function crore.place_group(p_queue int, p_name text, p_now bigint) returns void language plpgsql as $$
declare
  g crore.groups;
  l record;
begin
  select * into g from crore.groups where queue = p_queue and name = p_name;
  select * into l from crore.group_limits(p_queue);
  if g.waiting = 0 then
    g.shelf := 0;
  elsif crore.group_slots(l.ordered, l.concurrency, g.holds, g.held) <= 0 then
    g.shelf := 2;
  elsif (select started from crore.rate_window(g.opened, g.started, l.per, p_now)) >= l.rate then
    g.shelf := 3;
    g.rests := g.opened + l.per;
  else
    g.shelf := 1;
    g.turn := nextval('crore.turns');
  end if;
  update crore.groups set shelf = g.shelf, rests = g.rests, turn = g.turn where queue = p_queue and name = p_name;
end $$;

-- Jobs of a group have become ready. `p_job`: which, if it is one that the group may hold.
create function crore.enter_group(p_queue int, p_name text, p_now bigint, p_count int default 1, p_job bigint default null) returns void
language plpgsql as $$
declare
  v_shelf int;
  v_held bigint;
begin
  insert into crore.groups as g (queue, name, waiting) values (p_queue, p_name, p_count)
    on conflict (queue, name) do update set waiting = g.waiting + p_count returning shelf, held into v_shelf, v_held;
  perform crore.bump(p_queue, grouped => p_count);
  if v_shelf = 0 or (v_shelf = 2 and v_held = p_job) then perform crore.place_group(p_queue, p_name, p_now); end if;
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

-- Leases of the group have ended: one that was at its limit may start more jobs.
create function crore.release_group(p_queue int, p_name text, p_count int, p_now bigint) returns void language plpgsql as $$
declare
  v_shelf int;
begin
  update crore.groups set holds = greatest(0, holds - p_count) where queue = p_queue and name = p_name returning shelf into v_shelf;
  if v_shelf = 2 then perform crore.place_group(p_queue, p_name, p_now); end if;
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
  r record;
  v_seen int := 0;
begin
  for r in select name, waiting from crore.groups where queue = p_queue and shelf = 1 order by turn, name limit 1000 loop
    if r.waiting > 0 then return true; end if;
    perform crore.place_group(p_queue, r.name, p_now);
    v_seen := v_seen + 1;
  end loop;
  return v_seen = 1000;
end $$;

-- Takes the turns of up to `p_want` starts, one from each group after the other; returns the numbers of their jobs in this order.
create function crore.take_turns(p_queue int, p_want int, p_now bigint) returns bigint[] language plpgsql as $$
declare
  l record;
  r record;
  v_names text[] := '{}';
  v_helds bigint[] := '{}';
  v_mosts bigint[] := '{}';
  v_given int[] := '{}';
  v_again int[] := '{}';
  v_head int := 1;
  v_order int[] := '{}';
  v_nths int[] := '{}';
  v_jobs bigint[];
  v_most bigint;
  g int;
begin
  if p_want <= 0 then return '{}'; end if;
  select * into l from crore.group_limits(p_queue);
  for r in select c.name, c.waiting, c.holds, c.held, w.started from crore.groups c, crore.rate_window(c.opened, c.started, l.per, p_now) w
      where queue = p_queue and shelf = 1 order by turn, name limit p_want + 1000 loop
    exit when cardinality(v_order) >= p_want;
    v_most := least(r.waiting, crore.group_slots(l.ordered, l.concurrency, r.holds, r.held), l.rate - r.started);
    if v_most <= 0 then
      perform crore.place_group(p_queue, r.name, p_now);
      continue;
    end if;
    v_names := v_names || r.name;
    v_helds := v_helds || r.held;
    v_mosts := v_mosts || v_most;
    v_given := v_given || 1;
    g := cardinality(v_names);
    v_order := v_order || g;
    v_nths := v_nths || 1;
    if v_most > 1 then v_again := v_again || g; end if;
  end loop;
  while cardinality(v_order) < p_want and v_head <= cardinality(v_again) loop
    g := v_again[v_head];
    v_head := v_head + 1;
    v_given[g] := v_given[g] + 1;
    v_order := v_order || g;
    v_nths := v_nths || v_given[g];
    if v_given[g] < v_mosts[g] then v_again := v_again || g; end if;
  end loop;
  if cardinality(v_order) = 0 then return '{}'; end if;
  select array_agg(j.n order by o.place) into v_jobs
  from unnest(v_order, v_nths) with ordinality o(g, nth, place)
  cross join lateral (select coalesce(v_helds[o.g], (select n from crore.jobs where queue = p_queue and state = 2 and grp = v_names[o.g]
                      order by priority desc, seq offset o.nth - 1 limit 1)) as n) j;
  for i in 1 .. cardinality(v_names) loop
    update crore.groups c set waiting = c.waiting - v_given[i], holds = c.holds + v_given[i], held = null, opened = w.opened, started = w.started + v_given[i]
      from crore.groups b, crore.rate_window(b.opened, b.started, l.per, p_now) w
      where c.queue = p_queue and c.name = v_names[i] and b.queue = c.queue and b.name = c.name;
  end loop;
  perform crore.bump(p_queue, grouped => -cardinality(v_order));
  for i in 1 .. cardinality(v_names) loop
    if not i = any(v_again[v_head:]) then perform crore.place_group(p_queue, v_names[i], p_now); end if;
  end loop;
  -- Groups that may start more jobs go behind all others, in the order of their turns.
  for i in v_head .. cardinality(v_again) loop
    perform crore.place_group(p_queue, v_names[v_again[i]], p_now);
  end loop;
  return v_jobs;
end $$;
