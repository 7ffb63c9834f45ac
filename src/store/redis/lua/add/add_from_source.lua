-- carry: add, as one step of an ordered source. It happens only if the source stands where the caller believes, and moves it.
-- ARGV: those of add, then: source, its position before, its position after.
-- Reply: as add; or: 'stale'.
-- include: queue
local source, from, to = ARGV[#ARGV - 2], ARGV[#ARGV - 1], ARGV[#ARGV]
for _ = 1, 3 do ARGV[#ARGV] = nil end
if (call('HGET', stem .. 'marks', source) or '') ~= from then return { 'stale' } end
local reply = add()
if reply[1] ~= 'unknown' then call('HSET', stem .. 'marks', source, to) end
return reply
