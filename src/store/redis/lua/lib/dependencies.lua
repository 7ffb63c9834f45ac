-- include: runs bytes unique_keys events close_jobs enqueue_job batches wake

-- Ends a blocked job that will never be able to run: it is cancelled, or dead if it waits for its children (its tail begins with p).
-- Returns its id and state.
local function skip_job(down, why, attempt, crashes, priority, tail)
  local state = string.sub(tail, 1, 1) == 'p' and 'dead' or 'cancelled'
  call('HDEL', stem .. 'blocked', down)
  call('HDEL', stem .. 'edges', down .. '\0\0')
  call('HDEL', stem .. 'runs', down)
  local group = grouped() and group_of(call('HGET', stem .. 'jobs', down))
  if group and let_go(group, down) then wake() end
  add_bytes(-call('HSTRLEN', stem .. 'jobs', down))
  local keep, count, window, key = string.match(tail, '^p?(%d+) (%d+):?(%d*) (.*)$')
  if key ~= '' then free_unique_key(key, down) end
  event(state, down, why)
  local run = table.concat({ state, attempt, crashes, priority, now, why }, ' ')
  close_jobs(state, { down }, { run }, { tonumber(keep) }, tonumber(count), { tonumber(window) or 0 })
  return down, state
end

-- A blocked job waits for nothing any more.
local function unblock_job(down, attempt, crashes, priority, at)
  call('HDEL', stem .. 'blocked', down)
  if at > now then
    call('ZADD', stem .. 'scheduled', at, down)
    call('HSET', stem .. 'runs', down, table.concat({ 'scheduled', attempt, crashes, priority, string.format('%.0f', at), '' }, ' '))
  else
    enqueue_job(down, attempt, crashes, priority, '', false, now)
  end
  wake()
end

-- Applies the end of one upstream job, child or member of a batch (policy m and the time of its reservation) to a blocked job. A
-- dependency is a field that can be deleted once, so a repeated delivery is harmless. Returns the id and the state of a job that ends
-- because of it.
local function deliver_end(down, up, state)
  local edge = down .. '\0' .. up
  local policy = call('HGET', stem .. 'edges', edge)
  if not policy then return nil end
  call('HDEL', stem .. 'edges', edge)
  local member = string.sub(policy, 1, 1) == 'm'
  local runs_anyway, stale = false, false
  if member then runs_anyway, stale = count_member(down, policy, state) end
  local was, attempt, crashes, priority, at, tail = parse_run(call('HGET', stem .. 'runs', down))
  if was ~= 'blocked' then return nil end
  local parked = string.sub(tail, 1, 1) == 'p'
  if stale or (member and parked) then return nil end
  if state ~= 'done' and policy == 's' then
    local why = (parked and 'a child' or 'an upstream job') .. ' ended ' .. state .. ': ' .. string.match(up, '([^%z]*)$')
    return skip_job(down, why, attempt, crashes, priority, tail)
  end
  if call('HINCRBY', stem .. 'blocked', down, -1) <= 0 or runs_anyway then unblock_job(down, attempt, crashes, priority, at) end
  return nil
end

-- Tells the dependents among these members that are in this queue, and takes them off. Jobs that end because of it are added to
-- `ended` as id, state. Returns the members in other queues.
local function notify_local(id, state, members, ended)
  local foreign, notified = {}, {}
  for _, member in ipairs(members) do
    if string.sub(member, 1, 1) == '\0' then
      local skipped, skipped_state = deliver_end(string.sub(member, 2), '\0' .. id, state)
      if skipped then
        ended[#ended + 1] = skipped
        ended[#ended + 1] = skipped_state
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
