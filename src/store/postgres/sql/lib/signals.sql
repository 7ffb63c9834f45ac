-- Notifications to other processes: a JSON array of the queue, a letter (w work, f finished, c cancelled, e events, n task events, r reset) and a
-- subject. PostgreSQL sends equal ones of a transaction only once.

create function crore.signal(p_queue int, p_kind text, p_subject text default '') returns void language plpgsql as $$
begin
  perform pg_notify(:'channel', json_build_array((select name from crore.queues where n = p_queue), p_kind, p_subject)::text);
end $$;

-- Signals work, if a worker has found too little since the last time. `p_notified`: readers of task events know already.
create function crore.wake(p_queue int, p_notified boolean default false) returns void language plpgsql as $$
begin
  if not (crore.counts(p_queue)).hungry then return; end if;
  perform crore.bump(p_queue, hungry => false);
  perform crore.signal(p_queue, 'w');
end $$;

-- Records an event of a job, while events are recorded.
create function crore.event(p_queue int, p_now bigint, p_type text, p_id text, p_info text default '') returns void language plpgsql as $$
begin
  insert into crore.events (queue, type, id, at, info)
    select n, p_type, p_id, p_now, coalesce(p_info, '') from crore.queues where n = p_queue and watched > p_now;
  if found then perform crore.signal(p_queue, 'e'); end if;
end $$;

-- Keeps the last 10,000 events of a queue, and none an hour after the last request to record.
create function crore.trim_events(p_queue int, p_now bigint) returns void language plpgsql as $$
declare
  v_watched bigint := (select watched from crore.queues where n = p_queue);
begin
  if v_watched = 0 then return; end if;
  if v_watched + 3600000 < p_now then
    delete from crore.events where queue = p_queue;
    update crore.queues set watched = 0 where n = p_queue;
    return;
  end if;
  delete from crore.events where queue = p_queue
    and n <= (select n from crore.events where queue = p_queue order by n desc offset 10000 limit 1);
end $$;

-- Writes a task event, if somebody reads the topic.
create function crore.task_event(
  p_queue int, p_now bigint, p_type text, p_count bigint default null, p_worker text default null, p_token text default null,
  p_task bytea default null, p_result text default null
) returns void language plpgsql as $$
declare
  v_topic text := case p_type when 'done' then 'ends' else 'news' end;
begin
  if not exists (select 1 from crore.news_readers r join crore.queues q on q.name = r.queue
                 where q.n = p_queue and r.topic = v_topic and r.until > clock_timestamp()) then
    return;
  end if;
  insert into crore.news (queue, at, type, count, worker, token, task, result)
    values (p_queue, p_now, p_type, p_count, p_worker, p_token, p_task, p_result);
  perform crore.signal(p_queue, 'n');
end $$;

-- Task events are kept for half a minute.
create function crore.drop_task_events(p_now bigint) returns void language plpgsql as $$
begin
  delete from crore.news where n in (select n from crore.news order by n limit 100) and at < p_now - 30000;
end $$;
