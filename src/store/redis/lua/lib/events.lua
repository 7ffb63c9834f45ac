-- include: queue

-- Whether events of this queue are being recorded.
local watch_until

local function watched()
  if watch_until == nil then
    local till = call('HGET', stem .. 'meta', 'watched')
    watch_until = till and tonumber(till) > now or false
  end
  return watch_until
end

-- Records an event of a job; subscribers are notified once per script.
local listeners_told = false

local function event(kind, id, info)
  if not watched() then return end
  call('XADD', stem .. 'events', 'MAXLEN', '~', 10000, '*', kind, id, now, info or '')
  if not listeners_told then call('PUBLISH', stem .. 'signals', 'e') end
  listeners_told = true
end
