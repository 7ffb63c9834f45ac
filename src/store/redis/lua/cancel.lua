-- cancel: ends jobs that have not ended.
-- ARGV: now, then per job: id, keep-ms, keep-count, unique key to free.
-- Reply: outbox flag, then per job 1 or 0.
allow_oom()

-- Takes a job out of wherever it waits or runs; returns its counts, or nil when it has ended.
local function remove(id, state, run)
  local _, attempt, crashes, priority, at = parse(state ~= 'active' and run)
  local group = grouped() and group_of(call('HGET', stem .. 'jobs', id))
  if state == 'blocked' then
    call('HDEL', stem .. 'blocked', id)
  elseif state == 'scheduled' then
    call('ZREM', stem .. 'scheduled', id)
  elseif state == 'active' then
    local token
    token, attempt, crashes, priority = string.match(run, '^((%d+)%S*) (%d+) (%-?%d+)')
    call('HDEL', stem .. 'active', id)
    call('ZREM', stem .. 'reserved', id)
    free({ id })
    call('PUBLISH', stem .. 'signals', 'c' .. token)
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
  return attempt .. ' ' .. crashes .. ' ' .. priority
end

local reply, told = { 0 }, {}
for p = 2, #ARGV, 4 do
  local id = ARGV[p]
  local size = call('HSTRLEN', stem .. 'jobs', id)
  local state, run = locate(id)
  local open = size > 0 and state ~= 'done' and state ~= 'dead' and state ~= 'cancelled'
  reply[#reply + 1] = open and 1 or 0
  if open then
    local counts = remove(id, state, run)
    if state ~= 'active' then weigh(-size) end
    if ARGV[p + 3] ~= '' then unlock(ARGV[p + 3], id) end
    event('cancelled', id, 'cancelled')
    close('cancelled', { id }, { 'cancelled ' .. counts .. ' ' .. now .. ' cancelled' }, { tonumber(ARGV[p + 1]) }, tonumber(ARGV[p + 2]))
    told[#told + 1] = id
    told[#told + 1] = 'cancelled'
  end
end
if #told > 0 then reply[1] = tell(told) end
return reply
