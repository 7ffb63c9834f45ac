-- heartbeat: renews an existing session. ARGV: now, worker, lease in ms. Reply: 1, or 0 if it is gone.
-- include: allow_oom
allow_oom()
local deadline = call('ZSCORE', stem .. 'workers', ARGV[2])
if not deadline or tonumber(deadline) < 0 then return 0 end
call('ZADD', stem .. 'workers', 'XX', now + ARGV[3], ARGV[2])
return 1
