-- add_from_source: add, as one step of an ordered source. Applies only if the source is at the position that the caller
-- expects, and moves the source.
-- ARGV: those of add, then: source, its position before, its position after.
-- Reply: as add; or: 'stale'.
-- include: queue
local source, from, to = ARGV[#ARGV - 2], ARGV[#ARGV - 1], ARGV[#ARGV]
for _ = 1, 3 do ARGV[#ARGV] = nil end
if (call('HGET', stem .. 'marks', source) or '') ~= from then return { 'stale' } end
local reply = add(ARGV)
if reply[1] ~= 'unknown' then call('HSET', stem .. 'marks', source, to) end
return reply
