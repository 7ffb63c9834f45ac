-- remove_schedule. ARGV: now, name. Reply: 1 if it existed.
-- include: allow_oom
allow_oom()
call('ZREM', stem .. 'ticks', ARGV[2])
call('HDEL', stem .. 'lasts', ARGV[2])
return call('HDEL', stem .. 'schedules', ARGV[2])
