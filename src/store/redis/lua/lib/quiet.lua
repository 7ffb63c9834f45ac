-- include: queue

local LONGEST_QUIET = 300000

-- Jobs with a reservation are active, so `reserved` need not be among these.
local BUSY = { 'leased', 'ready', 'prio', 'turns', 'reopen', 'rested', 'outbox', 'moving', 'edges', 'kept_by' }

-- Whether nothing waits, is leased or is on its way to another queue, and the queue is hungry: whoever adds something next sends a signal, or has leased it to a
-- waiting worker, which the next short sweep notices.
local function is_quiet(list, stem, hungry)
  if not hungry or call('HLEN', stem .. 'active') > 1 then return false end
  local busy = { list }
  for i, name in ipairs(BUSY) do busy[i + 1] = stem .. name end
  return call('EXISTS', unpack(busy)) == 0
end

-- For how many milliseconds the queue needs no sweep unless a signal comes first; 0: it needs the usual ones.
local function quiet_for()
  if not is_quiet(list, stem, call('HGET', stem .. 'meta', 'hungry')) then return 0 end
  local till = now + LONGEST_QUIET
  for _, name in ipairs({ 'scheduled', 'done', 'dead', 'cancelled', 'unique_ttl', 'fates_ttl', 'ids', 'kept_ttl', 'arrived' }) do
    local first = call('ZRANGE', stem .. name, 0, 0, 'WITHSCORES')[2]
    if first then till = math.min(till, tonumber(first)) end
  end
  return math.max(0, math.ceil(till - now))
end
