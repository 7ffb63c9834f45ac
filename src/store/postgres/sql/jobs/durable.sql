-- The frequent calls, in two transactions. The first does the work and does not wait for the disk, so that the next call for the queue gets its lock at once.
-- The second waits until the log is on the disk as far as the first has written it; only then does the caller get its answer.

-- The first transaction may commit without waiting. False if the server is configured not to wait at all.
create function crore.commit_early() returns boolean language plpgsql as $$
begin
  if current_setting('synchronous_commit') = 'off' then return false; end if;
  perform set_config('synchronous_commit', 'off', true);
  return true;
end $$;

-- A transaction that has written nothing does not wait for the disk when it commits.
create function crore.wait_for_disk() returns void language sql as $$
  select pg_logical_emit_message(true, 'crore', '')
$$;

create procedure crore.durable_push(
  inout push boolean, p_now bigint, p_name text, p_bytes bytea, p_lengths int[], p_most bigint, p_max_bytes bigint
) language plpgsql as $$
begin
  push := crore.push(p_now, p_name, p_bytes, p_lengths, p_most, p_max_bytes);
  if push and crore.commit_early() then
    commit;
    perform crore.wait_for_disk();
  end if;
end $$;

create procedure crore.durable_add_plain(
  inout add_plain boolean, p_now bigint, p_name text, p_ids text[], p_bodies text[], p_spec text, p_traits jsonb, p_known boolean, p_most bigint,
  p_bytes bigint
) language plpgsql as $$
begin
  add_plain := crore.add_plain(p_now, p_name, p_ids, p_bodies, p_spec, p_traits, p_known, p_most, p_bytes);
  if add_plain and crore.commit_early() then
    commit;
    perform crore.wait_for_disk();
  end if;
end $$;

create procedure crore.durable_done(
  inout done boolean[], p_now bigint, p_cross boolean, p_name text, p_jobs bigint[], p_tokens text[], p_attempts int[], p_ids text[], p_results text[],
  p_lines text[], p_forget boolean
) language plpgsql as $$
begin
  done := crore.done(p_now, p_cross, p_name, p_jobs, p_tokens, p_attempts, p_ids, p_results, p_lines, p_forget);
  if crore.commit_early() then
    commit;
    perform crore.wait_for_disk();
  end if;
end $$;

create procedure crore.durable_done_tasks(inout done_tasks boolean[], p_now bigint, p_name text, p_tasks bigint[], p_tokens text[]) language plpgsql as $$
begin
  done_tasks := crore.done_tasks(p_now, p_name, p_tasks, p_tokens);
  if crore.commit_early() then
    commit;
    perform crore.wait_for_disk();
  end if;
end $$;

create procedure crore.durable_settle(inout settle boolean[], p_now bigint, p_cross boolean, p_name text, p_list jsonb) language plpgsql as $$
begin
  settle := crore.settle(p_now, p_cross, p_name, p_list);
  if crore.commit_early() then
    commit;
    perform crore.wait_for_disk();
  end if;
end $$;

create procedure crore.durable_enqueue_tasks(
  inout enqueue_tasks boolean[], p_now bigint, p_name text, p_bytes bytea, p_lengths int[], p_sizes int[], p_unique boolean[]
) language plpgsql as $$
begin
  enqueue_tasks := crore.enqueue_tasks(p_now, p_name, p_bytes, p_lengths, p_sizes, p_unique);
  if crore.commit_early() then
    commit;
    perform crore.wait_for_disk();
  end if;
end $$;

create procedure crore.durable_finish_tasks(
  inout finish_tasks boolean[], p_now bigint, p_name text, p_tasks bigint[], p_tokens text[], p_given text[], p_results text[]
) language plpgsql as $$
begin
  finish_tasks := crore.finish_tasks(p_now, p_name, p_tasks, p_tokens, p_given, p_results);
  if crore.commit_early() then
    commit;
    perform crore.wait_for_disk();
  end if;
end $$;
