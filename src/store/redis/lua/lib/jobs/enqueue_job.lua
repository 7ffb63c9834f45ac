-- include: groups record

-- Adds a job to the waiting list of its priority and writes its run. `since` is when it became ready, if that was not when it was
-- added; jobs of other priorities have their place there instead.
local function enqueue_job(id, attempt, crashes, priority, tail, front, since)
  local at = since and string.format('%.0f', since) or 0
  local fresh = attempt == 0 and crashes == 0 and tail == '' and not since
  local group = grouped() and group_of(call('HGET', stem .. 'jobs', id))
  if group then
    local held = is_held(group, id)
    front = front or held
    local seq = call('HINCRBY', stem .. 'meta', front and 'front' or 'back', front and -1 or 1)
    call('ZADD', stem .. 'group:' .. group, rank(priority, seq), id)
    call('HINCRBY', stem .. 'meta', 'grouped', 1)
    if call('ZADD', stem .. 'lines', 'NX', 0, group) == 1 or (held and call('SREM', stem .. 'full', group) == 1) then enqueue_group(group) end
    if fresh and priority == 0 then
      call('HDEL', stem .. 'runs', id)
      return
    end
  elseif priority == 0 then
    call(front and 'RPUSH' or 'LPUSH', stem .. 'ready', id)
    if fresh then
      call('HDEL', stem .. 'runs', id)
      return
    end
  else
    at = 50000000000000 + call('HINCRBY', stem .. 'meta', front and 'front' or 'back', front and -1 or 1)
    call('ZADD', stem .. 'prio', -priority, at .. id)
  end
  call('HSET', stem .. 'runs', id, 'ready ' .. attempt .. ' ' .. crashes .. ' ' .. priority .. ' ' .. at .. ' ' .. tail)
end
