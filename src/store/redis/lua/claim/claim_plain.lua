-- claim_plain: the beginning of claim, for a queue in which only new jobs without anything special wait, or only raw tasks, or nothing. It returns the reply of
-- claim, or lets claim continue with nothing changed. Most calls end here: they create none of the functions that the rest of claim needs.
-- include: allow_oom bytes lease_tasks
do
  local worker, n, nonce = ARGV[2], tonumber(ARGV[3]), ARGV[4]
  local paused, breaker, limits, groups, minds, watched_until, hungry =
    unpack(call('HMGET', stem .. 'meta', 'paused', 'breaker', 'pace', 'groups', 'minds', 'watched', 'hungry'))
  local ready = call('LLEN', stem .. 'ready')
  local raw = call('LLEN', list)
  local deadline = tonumber(call('ZSCORE', stem .. 'workers', worker) or -1)
  if not (paused or breaker or limits or groups or minds or deadline < 0 or (ready > 0 and raw > 0) or (hungry and ready + raw > 0))
    and (not watched_until or tonumber(watched_until) <= now)
    and call('EXISTS', stem .. 'runs', stem .. 'prio', stem .. 'ghosts', stem .. 'scheduled') == 0 then
    allow_oom()
    -- With the server's clock, a session that was renewed just now is not renewed again: writing the time costs more than everything else in an empty claim.
    if ARGV[1] ~= '' or deadline < now + ARGV[5] * 15 / 16 then call('ZADD', stem .. 'workers', 'XX', 'GT', now + ARGV[5], worker) end
    local more = math.max(ready, raw) > n and 1 or 0
    if more == 0 and not hungry then call('HSET', stem .. 'meta', 'hungry', '1') end
    local total = math.min(n, math.max(ready, raw))
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
    local fields, bytes, k, prefix = {}, 0, 0, nil
    -- Formatting a number costs more than everything else that is done for a job here.
    local digits = { [0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' }
    local head, tail = '1.' .. first .. '-', '.' .. nonce .. ' 0 0 ' .. now .. ' ' .. worker
    for i = 1, #ids do
      local ones = (i - 1) % 10
      if ones == 0 then prefix = head .. string.format('%02d', (i - 1) / 10) end
      fields[k + 1], fields[k + 2] = ids[i], prefix .. digits[ones] .. tail
      k = k + 2
      bytes = bytes + #records[i]
    end
    call('HSET', stem .. 'active', unpack(fields))
    add_bytes(-bytes)
    return { 'ok', more, '', now, first, cmsgpack.pack(ids), cmsgpack.pack(records), '\144' }
  end
end
