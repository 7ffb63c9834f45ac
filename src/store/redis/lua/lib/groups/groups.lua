-- include: queue limits ordered_groups pad

-- Queues that never had a job with a group skip all work for groups.
local has_groups

local function grouped()
  if has_groups == nil then has_groups = call('HEXISTS', stem .. 'meta', 'groups') == 1 end
  return has_groups
end

-- Marks the queue as having groups.
local function begin_groups()
  if call('HSETNX', stem .. 'meta', 'groups', 1) == 1 then pad('holds') end
  has_groups = true
end

-- The score of a job in the waiting list of its group: by priority, then by sequence. Two jobs that wait at the same time
-- are never 2^33 apart, so the sequence cannot reach into another priority.
local function rank(priority, seq) return string.format('%.0f', -priority * 8589934592 + seq) end

-- Removes a group that may not start more jobs now from the rotation; false if it may.
local function park_group(group)
  local rule = get_limits()
  if not rule then return false end
  if rule.group_most > 0 and (tonumber(call('HGET', stem .. 'holds', group)) or 0) >= rule.group_most then
    call('SADD', stem .. 'full', group)
    return true
  end
  if waits_for_held(group) then
    call('SADD', stem .. 'full', group)
    return true
  end
  if rule.group_count == 0 then return false end
  local start, count = rate_window(call('GET', stem .. 'rate:' .. group), rule.group_per)
  if count < rule.group_count then return false end
  call('ZADD', stem .. 'rested', start + rule.group_per, group)
  return true
end

-- Puts a group with waiting jobs into the right place: the rotation, or out of it.
local function enqueue_group(group)
  if not park_group(group) then call('LPUSH', stem .. 'turns', group) end
end

-- The same for a group that was out of the rotation; its waiting jobs may be gone by now.
local function requeue_group(group)
  if call('EXISTS', stem .. 'group:' .. group) == 1 then enqueue_group(group) else call('ZREM', stem .. 'lines', group) end
end

-- A waiting job has ended or left: if its group held it, others may start. Returns whether it did.
local function let_go(group, id)
  if not is_held(group, id) then return false end
  call('HDEL', stem .. 'held', group)
  if call('SREM', stem .. 'full', group) == 1 then requeue_group(group) end
  return true
end
