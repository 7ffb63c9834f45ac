-- include: queue

-- How many raw tasks are leased: meta counts the tasks that share a field with another one.
local function count_leased()
  return call('HLEN', stem .. 'leased') + (call('HGET', stem .. 'meta', 'sheaved') or 0)
end
