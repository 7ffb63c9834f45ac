-- update_session: replaces the info of a live session. ARGV: now, worker, info. Reply: 1, or 0 if it is gone.
-- include: allow_oom
allow_oom()
local deadline = call('ZSCORE', stem .. 'workers', ARGV[2])
if not deadline or tonumber(deadline) < 0 then return 0 end
call('HSET', stem .. 'info', ARGV[2], ARGV[3])
return 1
