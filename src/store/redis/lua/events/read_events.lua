-- read_events: events after a position. ARGV: now, position, number of events after which no entry is begun.
-- A position is that of an entry, and for all but the last event of an entry with many also the number of the event in it: 'ms-seq' or 'ms-seq-n'.
-- Reply: 1 if events after the position were dropped, number of events of the first entry that are not after the position, then per entry: position, kind, id,
-- time, info, as lib/events.lua writes them.
-- include: queue
local key, after, skip = stem .. 'events', string.match(ARGV[2], '^(%d*%-?%d*)%-?(%d*)$')
local reply = { #call('XRANGE', key, after, after) == 0 and 1 or 0, tonumber(skip) or 0 }
local limit, count, from = tonumber(ARGV[3]), 0, (skip == '' and '(' or '') .. after
-- An entry may hold fifty events: twenty at a time, so that what is not returned is hardly read.
repeat
  local entries = call('XRANGE', key, from, '+', 'COUNT', math.min(limit, 20))
  for _, entry in ipairs(entries) do
    if #reply == 2 then
      if entry[1] ~= after then reply[2] = 0 end
      count = -reply[2]
    end
    if count >= limit then break end
    local fields = entry[2]
    for _, value in ipairs({ entry[1], fields[1], fields[2], fields[3], fields[4] }) do reply[#reply + 1] = value end
    count = count + (string.match(fields[1], '^(%d+)%+') or 1)
    from = '(' .. entry[1]
  end
until #entries < math.min(limit, 20) or count >= limit
return reply
