-- The notes of a job: its log, its progress, the history of its attempts. The beginning is cut off when they grow too long.

create function crore.append_attempt(p_job bigint, p_line text) returns void language plpgsql as $$
begin
  insert into crore.notes as t (n, attempts) values (p_job, right(p_line, 65536))
    on conflict (n) do update set attempts = right(coalesce(t.attempts, '') || excluded.attempts, 65536);
end $$;

create function crore.append_log(p_job bigint, p_lines text) returns void language plpgsql as $$
begin
  insert into crore.notes as t (n, log) values (p_job, right(p_lines, 65536))
    on conflict (n) do update set log = right(coalesce(t.log, '') || excluded.log, 65536);
end $$;

create function crore.write_progress(p_job bigint, p_progress text, p_step text) returns void language plpgsql as $$
begin
  insert into crore.notes as t (n, progress, steps) values (p_job, p_progress, right(p_step, 4096))
    on conflict (n) do update set progress = excluded.progress, steps = right(coalesce(t.steps, '') || excluded.steps, 4096);
end $$;

create function crore.write_children(p_job bigint, p_children text) returns void language plpgsql as $$
begin
  insert into crore.notes (n, children) values (p_job, p_children) on conflict (n) do update set children = excluded.children;
end $$;

-- The job has already run, and waits for its children or has done so.
create function crore.has_children(p_job bigint) returns boolean language sql as $$
  select exists (select 1 from crore.notes where n = p_job and children is not null)
$$;
