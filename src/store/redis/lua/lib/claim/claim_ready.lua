-- include: queue claim_entries

-- Ids of jobs that were cancelled while waiting are still in the list; `ghosts` counts how often to skip each id.
local has_cancelled = call('EXISTS', stem .. 'ghosts') == 1

local function skip_cancelled(popped)
  local kept = 0
  for _, id in ipairs(popped) do
    if call('HEXISTS', stem .. 'ghosts', id) == 1 then
      if call('HINCRBY', stem .. 'ghosts', id, -1) <= 0 then call('HDEL', stem .. 'ghosts', id) end
      call('HINCRBY', stem .. 'meta', 'stale', -1)
    else
      kept = kept + 1
      ids[#ids + 1] = id
    end
  end
  return kept
end

-- How many of the ids in the list belong to cancelled jobs.
local function count_cancelled()
  return has_cancelled and tonumber(call('HGET', stem .. 'meta', 'stale')) or 0
end

-- Takes jobs of default priority without a group, oldest first.
local function take_ready(want)
  for _ = 1, 100 do
    local popped = want > 0 and call('RPOP', stem .. 'ready', want)
    if not popped then return end
    if has_cancelled then
      want = want - skip_cancelled(popped)
    elseif #ids == 0 then
      ids = popped
      return
    else
      for _, id in ipairs(popped) do ids[#ids + 1] = id end
      return
    end
  end
end

-- Removes the ids of cancelled jobs if the list holds nothing else; returns whether it did.
local function drop_cancelled()
  if not has_cancelled or call('LLEN', stem .. 'ready') ~= count_cancelled() then return false end
  skip_cancelled(call('RPOP', stem .. 'ready', 1000) or {})
  return true
end
