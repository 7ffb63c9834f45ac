-- claim_plain: the beginning of claim, for a queue in which only new jobs without anything special wait, or only raw tasks, or nothing. It returns the reply of
-- claim, or lets claim continue with nothing changed. Most calls end here: they create none of the functions that the rest of claim needs.
-- include: allow_oom bytes events plain_session waiting lease_tasks lease_jobs
do
  local worker, n, nonce = ARGV[2], tonumber(ARGV[3]), ARGV[4]
  local deadline, hungry, waiting, watched_until = plain_session(worker)
  local ready = call('LLEN', stem .. 'ready')
  local raw = call('LLEN', list)
  if deadline and not ((ready > 0 and raw > 0) or (hungry and ready + raw > 0))
    and call('EXISTS', stem .. 'runs', stem .. 'prio', stem .. 'ghosts', stem .. 'scheduled') == 0 then
    allow_oom()
    watch_until = watched_until > now and watched_until
    renew_session(worker, deadline, ARGV[5])
    local more = math.max(ready, raw) > n and 1 or 0
    local total = math.min(n, math.max(ready, raw))
    if total == 0 and ARGV[6] ~= '' then
      wait_for_delivery(worker, ARGV[3], nonce, ARGV[6])
    else
      stop_waiting(worker, waiting)
      if more == 0 and not hungry then call('HSET', stem .. 'meta', 'hungry', '1') end
    end
    if total == 0 then return { 'ok', more, '', now, 0 } end
    local first = call('HINCRBY', stem .. 'meta', 'seq', total) - total + 1
    if raw > 0 then
      local tasks = call('RPOP', list, ARGV[3])
      local bytes = size_of(tasks)
      local size, packs = lease_tasks(tasks, bytes, first, worker, nonce)
      add_bytes(-bytes)
      return { 'ok', more, '', now, first, size, unpack(packs) }
    end
    local ids = call('RPOP', stem .. 'ready', ARGV[3])
    local records = call('HMGET', stem .. 'jobs', unpack(ids))
    lease_jobs(ids, first, worker, nonce)
    event_of_all('started', ids, '1')
    add_bytes(-size_of(records))
    return { 'ok', more, '', now, first, cmsgpack.pack(ids), cmsgpack.pack(records), '\144' }
  end
end
