-- include: runs bytes unique_keys events close_jobs enqueue_job wake

-- Applies the end of one upstream job to a blocked job. A dependency is a field that can be deleted once, so a repeated
-- delivery is harmless. Returns the job's id if it must be skipped.
local function deliver_end(down, up, state)
  local edge = down .. '\0' .. up
  local policy = call('HGET', stem .. 'edges', edge)
  if not policy then return nil end
  call('HDEL', stem .. 'edges', edge)
  local was, _, _, priority, at, tail = parse_run(call('HGET', stem .. 'runs', down))
  if was ~= 'blocked' then return nil end
  if state ~= 'done' and policy == 's' then
    call('HDEL', stem .. 'blocked', down)
    call('HDEL', stem .. 'runs', down)
    add_bytes(-call('HSTRLEN', stem .. 'jobs', down))
    local keep, count, window, key = string.match(tail, '^(%d+) (%d+):?(%d*) (.*)$')
    if key ~= '' then free_unique_key(key, down) end
    local why = 'an upstream job ended ' .. state .. ': ' .. string.match(up, '([^%z]*)$')
    event('cancelled', down, why)
    close_jobs('cancelled', { down }, { 'cancelled 0 0 ' .. priority .. ' ' .. now .. ' ' .. why }, { tonumber(keep) }, tonumber(count), { tonumber(window) or 0 })
    return down
  end
  if call('HINCRBY', stem .. 'blocked', down, -1) > 0 then return nil end
  call('HDEL', stem .. 'blocked', down)
  if at > now then
    call('ZADD', stem .. 'scheduled', at, down)
    call('HSET', stem .. 'runs', down, 'scheduled 0 0 ' .. priority .. ' ' .. at .. ' ')
  else
    enqueue_job(down, 0, 0, priority, '', false, now)
  end
  wake()
  return nil
end

-- Tells the dependents among these members that are in this queue, and takes them off. Jobs that are cancelled because of it are added to
-- `ended` as id, 'cancelled'. Returns the members in other queues.
local function notify_local(id, state, members, ended)
  local foreign, notified = {}, {}
  for _, member in ipairs(members) do
    if string.sub(member, 1, 1) == '\0' then
      local cancelled = deliver_end(string.sub(member, 2), '\0' .. id, state)
      if cancelled then
        ended[#ended + 1] = cancelled
        ended[#ended + 1] = 'cancelled'
      end
      notified[#notified + 1] = member
    else
      foreign[#foreign + 1] = member
    end
  end
  if #notified > 0 then call('SREM', stem .. 'deps:' .. id, unpack(notified)) end
  return foreign
end

-- Notifies the dependents of ended jobs: directly if they are few and in this queue, otherwise through the outbox.
-- Pairs: id, state, id, state … Returns 1 if the outbox is not empty.
local function notify_dependents(ended_pairs)
  if call('EXISTS', stem .. 'downs') == 0 then return 0 end
  local budget, head = 1000, 1
  while head <= #ended_pairs do
    local id, state = ended_pairs[head], ended_pairs[head + 1]
    head = head + 2
    if call('HEXISTS', stem .. 'downs', id) == 1 then
      local deps = stem .. 'deps:' .. id
      local size = call('SCARD', deps)
      if size <= budget then
        budget = budget - size
        local members = call('SMEMBERS', deps)
        table.sort(members)
        notify_local(id, state, members, ended_pairs)
      end
      if call('SCARD', deps) == 0 then
        call('HDEL', stem .. 'downs', id)
      else
        call('RPUSH', stem .. 'outbox', state .. '\0' .. id)
        -- the record may be removed before the other queues are notified
        call('HSET', stem .. 'fates', id, state)
        call('ZADD', stem .. 'fates_ttl', now + 600000, id)
      end
    end
  end
  return call('EXISTS', stem .. 'outbox')
end
