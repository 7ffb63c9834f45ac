-- remove_tasks: removes every waiting raw task that equals this one. ARGV: now, task, channel of the original Worqr.
-- Reply: how many. Always O(n).
-- include: allow_oom bytes original
call('LLEN', list)
allow_oom()
local n = call('LREM', list, 0, ARGV[2])
add_bytes(-n * #ARGV[2])
call('SREM', stem .. 'seals', ARGV[2])
call('PUBLISH', stem .. 'news', 'c' .. ARGV[2])
notify_original(ARGV[3], ARGV[2])
return n
