-- include: queue

-- How many entries may run at once and start per interval, if limits are set.
local limits_read, queue_limits

local function get_limits()
  if limits_read == nil then
    local text, ordered = unpack(call('HMGET', stem .. 'meta', 'pace', 'ordered'))
    limits_read = text ~= false
    if limits_read then
      queue_limits = {}
      queue_limits.most, queue_limits.count, queue_limits.per, queue_limits.group_most, queue_limits.group_count, queue_limits.group_per =
        string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
      for name, value in pairs(queue_limits) do queue_limits[name] = tonumber(value) end
      queue_limits.ordered = ordered ~= false
    end
  end
  return limits_read and queue_limits
end

-- The current rate window: when it began, and how many entries have started in it.
local function rate_window(text, per)
  local start, count = string.match(text or '', '^(%d+) (%d+)$')
  if not start or now >= start + per or now < tonumber(start) then return now, 0 end
  return tonumber(start), tonumber(count)
end
