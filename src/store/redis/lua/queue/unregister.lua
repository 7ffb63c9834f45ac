-- unregister: takes a name off the record, unless somebody has put it there lately. KEYS: as for register.
-- ARGV: now, name, ms that count as lately. Reply: 1 when it is off, else 0.
-- include: queue
local at = call('ZSCORE', KEYS[2], ARGV[2])
if at and now - at < tonumber(ARGV[3]) then return 0 end
call('SREM', KEYS[1], ARGV[2])
call('ZREM', KEYS[2], ARGV[2])
return 1
