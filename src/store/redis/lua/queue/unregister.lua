-- unregister: removes a queue from the registry, unless it was registered recently. KEYS: as for register.
-- ARGV: now, name, ms that count as recent. Reply: 1 if it was removed, else 0.
-- include: queue
local at = call('ZSCORE', KEYS[2], ARGV[2])
if at and now - at < tonumber(ARGV[3]) then return 0 end
call('SREM', KEYS[1], ARGV[2])
call('ZREM', KEYS[2], ARGV[2])
return 1
