-- leave, also used to remove the session of a dead worker: ends a session that holds nothing.
-- ARGV: now, worker, 1 if only an expired session may end. Reply: 1 ended, 0 not.
-- include: waiting
local deadline = call('ZSCORE', stem .. 'workers', ARGV[2])
if ARGV[3] == '1' and deadline and tonumber(deadline) > now then return 0 end
stop_waiting(ARGV[2], call('HGET', stem .. 'meta', 'waiting'))
call('ZREM', stem .. 'workers', ARGV[2])
call('HDEL', stem .. 'info', ARGV[2])
call('SREM', stem .. 'raw', ARGV[2])
return 1
