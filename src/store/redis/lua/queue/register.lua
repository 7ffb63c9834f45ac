-- register: adds a queue to the registry. KEYS: set of names, sorted set of names by the time of their last registration.
-- ARGV: now, name. Reply: 1.
-- include: queue
call('ZREM', KEYS[2], '') -- exempts the script from the out-of-memory check, as allow_oom does
call('SADD', KEYS[1], ARGV[2])
call('ZADD', KEYS[2], now, ARGV[2])
return 1
