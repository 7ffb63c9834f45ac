-- expire_session: declares a session dead, as if its lease had ended. ARGV: now, worker. Reply: 1, or 0 if there is none.
-- include: allow_oom
allow_oom()
if not call('ZSCORE', stem .. 'workers', ARGV[2]) then return 0 end
call('ZADD', stem .. 'workers', 'XX', -1, ARGV[2])
return 1
