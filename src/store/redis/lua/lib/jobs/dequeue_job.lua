-- include: runs release_groups bytes record

-- Removes a job that has not ended from where it waits or runs; returns its counts, and its token if it was running.
-- returns: it is about to wait elsewhere, so that an ordered group goes on waiting for it.
local function dequeue_job(id, state, run, returns)
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
    call('HDEL', stem .. 'edges', id .. '\0\0') -- of a batch that is open
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
  if group and not returns and let_go(group, id) then wake() end
  call('HDEL', stem .. 'runs', id)
  add_bytes(-call('HSTRLEN', stem .. 'jobs', id))
  return attempt .. ' ' .. crashes .. ' ' .. priority
end
