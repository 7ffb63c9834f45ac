-- include: groups record

-- Adds a job to the waiting list of its priority and writes its run.
local function enqueue_job(id, attempt, crashes, priority, tail, front)
  local at = 0
  local group = grouped() and group_of(call('HGET', stem .. 'jobs', id))
  if group then
    local seq = call('HINCRBY', stem .. 'meta', front and 'front' or 'back', front and -1 or 1)
    call('ZADD', stem .. 'group:' .. group, rank(priority, seq), id)
    call('HINCRBY', stem .. 'meta', 'grouped', 1)
    if call('ZADD', stem .. 'lines', 'NX', 0, group) == 1 then enqueue_group(group) end
    if attempt == 0 and crashes == 0 and priority == 0 and tail == '' then
      call('HDEL', stem .. 'runs', id)
      return
    end
  elseif priority == 0 then
    call(front and 'RPUSH' or 'LPUSH', stem .. 'ready', id)
    if attempt == 0 and crashes == 0 and tail == '' then
      call('HDEL', stem .. 'runs', id)
      return
    end
  else
    at = 50000000000000 + call('HINCRBY', stem .. 'meta', front and 'front' or 'back', front and -1 or 1)
    call('ZADD', stem .. 'prio', -priority, at .. id)
  end
  call('HSET', stem .. 'runs', id, 'ready ' .. attempt .. ' ' .. crashes .. ' ' .. priority .. ' ' .. at .. ' ' .. tail)
end
