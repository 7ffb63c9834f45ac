-- include: runs release_groups bytes record

-- Removes a job that has not ended from where it waits or runs; returns its counts, and its token if it was running.
local function dequeue_job(id, state, run)
  if state == 'active' then
    local token, attempt, crashes, priority = string.match(run, '^((%d+)%S*) (%d+) (%-?%d+)')
    call('HDEL', stem .. 'active', id)
    call('ZREM', stem .. 'reserved', id)
    release_groups({ run })
    return attempt .. ' ' .. crashes .. ' ' .. priority, token
  end
  local _, attempt, crashes, priority, at = parse_run(run)
  local group = grouped() and group_of(call('HGET', stem .. 'jobs', id))
  if state == 'blocked' then
    call('HDEL', stem .. 'blocked', id)
  elseif state == 'scheduled' then
    call('ZREM', stem .. 'scheduled', id)
  elseif group then
    call('ZREM', stem .. 'group:' .. group, id)
    call('HINCRBY', stem .. 'meta', 'grouped', -1)
  elseif priority == 0 then
    call('HINCRBY', stem .. 'ghosts', id, 1)
    call('HINCRBY', stem .. 'meta', 'stale', 1)
  else
    call('ZREM', stem .. 'prio', at .. id)
  end
  call('HDEL', stem .. 'runs', id)
  add_bytes(-call('HSTRLEN', stem .. 'jobs', id))
  return attempt .. ' ' .. crashes .. ' ' .. priority
end
