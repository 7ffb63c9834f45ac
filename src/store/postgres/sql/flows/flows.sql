-- The journal of flows. A token identifies a runner; what a runner writes counts only while it holds its flow.

-- Records a new flow with its first holder, once; returns its number, null if there is another flow with this id.
create function crore.begin_flow(p_id text, p_state text, p_info text, p_definition text, p_token text, p_hold bigint) returns bigint
language plpgsql as $$
declare
  v_flow bigint;
begin
  insert into crore.flows (id, state, info, definition) values (p_id, p_state, p_info, p_definition)
    on conflict (id) do nothing returning n into v_flow;
  if v_flow is null then
    select h.flow into v_flow from crore.flows f join crore.flow_holds h on h.flow = f.n where f.id = p_id and h.holder = p_token;
    return v_flow;
  end if;
  insert into crore.flow_holds (flow, holder, until) values (v_flow, p_token, crore.time(null) + p_hold);
  return v_flow;
end $$;

-- Makes a runner the holder unless another is alive. `p_known` is the information that `p_info` was made from. Returns `taken` with the number of the flow
-- and how many rows of completions it has, `held`, `changed` if the information is no longer what it was, or `none`.
create function crore.take_over_flow(p_id text, p_known text, p_info text, p_token text, p_hold bigint, p_dead boolean)
returns table (answer text, flow bigint, written bigint) language plpgsql as $$
declare
  v_now bigint;
  v_flow bigint;
  v_info text;
  v_hold crore.flow_holds;
begin
  select f.n into v_flow from crore.flows f where f.id = p_id;
  select * into v_hold from crore.flow_holds h where h.flow = v_flow for update;
  if not found then return query select 'none', 0::bigint, 0::bigint; return; end if;
  v_now := crore.time(null);
  if v_hold.holder <> p_token and v_hold.until >= v_now and not p_dead then return query select 'held', 0::bigint, 0::bigint; return; end if;
  select f.info into v_info from crore.flows f where f.n = v_flow;
  if v_info <> p_known then return query select 'changed', 0::bigint, 0::bigint; return; end if;
  update crore.flows f set state = 'running', info = p_info where f.n = v_flow;
  update crore.flow_holds h set holder = p_token, until = v_now + p_hold, cancel = false, counts = null, running = null where h.flow = v_flow;
  return query select 'taken', v_flow, coalesce((select max(e.n) from crore.flow_ends e where e.flow = v_flow), 0);
end $$;

-- Writes completions as row `p_n`; false if another runner holds the flow. The lock keeps others from taking the flow over before the end of this call.
create function crore.write_flow(p_flow bigint, p_token text, p_n bigint, p_body text) returns boolean language plpgsql as $$
begin
  perform 1 from crore.flow_holds where flow = p_flow and holder = p_token for share;
  if not found then return false; end if;
  insert into crore.flow_ends (flow, n, body) values (p_flow, p_n, p_body) on conflict do nothing;
  return true;
end $$;

create function crore.hold_flow(p_flow bigint, p_token text, p_hold bigint, p_counts text, p_running text) returns text language plpgsql as $$
declare
  v_cancel boolean;
begin
  update crore.flow_holds set until = crore.time(null) + p_hold, counts = p_counts, running = p_running
    where flow = p_flow and holder = p_token returning cancel into v_cancel;
  if not found then return 'lost'; end if;
  return case when v_cancel then 'cancel' else 'held' end;
end $$;

-- Ends the hold of a runner with what became of its flow; does nothing if another runner holds it.
create function crore.finish_flow(p_flow bigint, p_token text, p_state text, p_info text) returns void language plpgsql as $$
begin
  update crore.flow_holds set holder = null, until = 0, counts = null, running = null where flow = p_flow and holder = p_token;
  if found then update crore.flows set state = p_state, info = p_info where n = p_flow; end if;
end $$;

-- Asks the holder to cancel, or cancels a flow that nobody holds; false if there is nothing to cancel.
create function crore.cancel_flow(p_id text) returns boolean language plpgsql as $$
declare
  v_flow bigint := (select n from crore.flows where id = p_id);
begin
  perform 1 from crore.flow_holds where flow = v_flow for update;
  if not exists (select 1 from crore.flows where n = v_flow and state in ('running', 'failed', 'interrupted')) then return false; end if;
  update crore.flow_holds set cancel = true where flow = v_flow and holder is not null and until >= crore.time(null);
  if not found then update crore.flows set state = 'cancelled' where n = v_flow; end if;
  return true;
end $$;

-- Locks in the same order as the others.
create function crore.forget_flow(p_id text) returns void language plpgsql as $$
declare
  v_flow bigint := (select n from crore.flows where id = p_id);
begin
  delete from crore.flow_holds where flow = v_flow;
  delete from crore.flows where n = v_flow;
end $$;

create function crore.remember_nodes(p_name text, p_nodes text[], p_bodies text[]) returns void language sql as $$
  insert into crore.flow_memories (name, node, body) select p_name, u.node, u.body from unnest(p_nodes, p_bodies) as u (node, body)
    on conflict (name, node) do update set body = excluded.body
$$;
