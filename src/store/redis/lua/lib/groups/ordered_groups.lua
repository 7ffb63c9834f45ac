-- include: limits

-- Queues with ordered groups: `held` has the job of a group that has started, has not ended, and waits to go on. No other job
-- of the group may start. While it runs, the concurrency of the group, which is then one, keeps the others waiting.
local function ordered()
  local rule = get_limits()
  return rule and rule.ordered
end

-- A job whose lease has this run waits again.
local function hold_job(id, run)
  local cut = ordered() and string.find(run, '\0', 1, true)
  if cut then call('HSETNX', stem .. 'held', string.sub(run, cut + 1), id) end
end

local function is_held(group, id) return ordered() and call('HGET', stem .. 'held', group) == id end

-- The job that a group holds, and whether it is ready. One that was claimed by an earlier version, which knows nothing of it, is
-- held no longer.
local function held_job(group, id)
  if not id then return nil end
  if call('ZSCORE', stem .. 'group:' .. group, id) then return id, true end
  local run = call('HGET', stem .. 'runs', id) or ''
  if string.find(run, '^scheduled ') or string.find(run, '^blocked ') then return id, false end
  call('HDEL', stem .. 'held', group)
  return nil
end

-- Whether the group waits for a job that is not ready yet.
local function waits_for_held(group)
  if not ordered() then return false end
  local id, ready = held_job(group, call('HGET', stem .. 'held', group))
  return id and not ready
end
