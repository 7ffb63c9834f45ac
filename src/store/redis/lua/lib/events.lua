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

-- Subscribers are notified once per script.
local listeners_told = false

local function tell_listeners()
  if not listeners_told then call('PUBLISH', stem .. 'signals', 'e') end
  listeners_told = true
end

-- The newest ten thousand are kept, and at most a thousand more, so that they are rarely counted: `recorded` in `meta` counts them.
local function write_events(kind, ids, count, info)
  call('XADD', stem .. 'events', '*', kind, ids, now, info or '')
  local all = call('HINCRBY', stem .. 'meta', 'recorded', count)
  if all < 11000 then return end
  local first
  repeat
    local before = first
    for i, entry in ipairs(call('XRANGE', stem .. 'events', first or '-', '+', 'COUNT', '10')) do
      first = entry[1]
      local size = string.match(entry[2][1], '^(%d+)%+') or 1
      if i == 10 or all - size < 10000 then break end
      all = all - size
    end
  until first == before
  if first then call('XTRIM', stem .. 'events', 'MINID', first) end
  call('HSET', stem .. 'meta', 'recorded', all)
end

-- Records an event of a job.
local function event(kind, id, info)
  if not watched() then return end
  write_events(kind, id, 1, info)
  tell_listeners()
end

-- Records the same event of many jobs, up to fifty in an entry: their number and '+' precede the kind, and their ids are packed.
local function event_of_all(kind, ids, info)
  if #ids == 0 or not watched() then return end
  for from = 1, #ids, 50 do
    local some = { unpack(ids, from, math.min(from + 49, #ids)) }
    write_events(#some .. '+' .. kind, cmsgpack.pack(some), #some, info)
  end
  tell_listeners()
end
