-- include: queue

-- How many raw tasks are leased: meta counts those that share a field with another.
local function count_leased()
  return call('HLEN', stem .. 'leased') + (call('HGET', stem .. 'meta', 'sheaved') or 0)
end
