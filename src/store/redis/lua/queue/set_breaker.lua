-- set_breaker: after how many failures in a row nothing is given out, and for how long.
-- ARGV: now, 'failures pause', or '' for no breaker. Reply: 1. What it has counted stays if there was one before.
-- include: allow_oom
allow_oom()
if ARGV[2] == '' then
  call('HDEL', stem .. 'meta', 'breaker', 'broken', 'hungry')
  call('PUBLISH', stem .. 'signals', 'w')
else
  call('HSET', stem .. 'meta', 'breaker', ARGV[2])
end
return 1
