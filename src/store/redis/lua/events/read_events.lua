-- read_events: events after a position. ARGV: now, position, maximum number of events.
-- Reply: 1 if events after the position were dropped, then per event: position, kind, id, time, info.
-- include: queue
local key, after = stem .. 'events', ARGV[2]
local reply = { #call('XRANGE', key, after, after) == 0 and 1 or 0 }
for _, entry in ipairs(call('XRANGE', key, '(' .. after, '+', 'COUNT', ARGV[3])) do
  local fields = entry[2]
  for _, value in ipairs({ entry[1], fields[1], fields[2], fields[3], fields[4] }) do reply[#reply + 1] = value end
end
return reply
