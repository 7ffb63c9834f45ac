-- report: success without a token, for active jobs and for delivered, unanswered ones that wait for their retry.
-- ARGV: now, then per job: id, keep-ms, keep-count, unique key to free.
-- Reply: outbox flag, then per job 1 or 0.
allow_oom()

-- Takes a job out of where it waits or runs; returns its counts, or nil when a report no longer matters.
local function withdraw(id, size)
  local state, run = locate(id)
  if not run then return nil end
  if state == 'active' then
    local attempt, crashes, priority = string.match(run, '^(%d+)%S* (%d+) (%-?%d+)')
    call('HDEL', stem .. 'active', id)
    call('ZREM', stem .. 'reserved', id)
    free({ id })
    return attempt .. ' ' .. crashes .. ' ' .. priority
  end
  if state ~= 'scheduled' and state ~= 'ready' then return nil end
  local _, attempt, crashes, priority, at, tail = parse(run)
  if attempt == 0 or string.byte(tail) == 1 then return nil end
  local group = grouped() and group_of(call('HGET', stem .. 'jobs', id))
  if state == 'scheduled' then
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
  weigh(-size)
  return attempt .. ' ' .. crashes .. ' ' .. priority
end

local reply, told = { 0 }, {}
for p = 2, #ARGV, 4 do
  local id = ARGV[p]
  local size = call('HSTRLEN', stem .. 'jobs', id)
  local counts = size > 0 and withdraw(id, size)
  reply[#reply + 1] = counts and 1 or 0
  if counts then
    if ARGV[p + 3] ~= '' then unlock(ARGV[p + 3], id) end
    event('done', id)
    close('done', { id }, { 'done ' .. counts .. ' ' .. now .. ' ' }, { tonumber(ARGV[p + 1]) }, tonumber(ARGV[p + 2]))
    told[#told + 1] = id
    told[#told + 1] = 'done'
  end
end
if #told > 0 then reply[1] = tell(told) end
return reply
