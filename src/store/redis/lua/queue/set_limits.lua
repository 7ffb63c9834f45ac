-- pace: how many may run at once and start per interval.
-- ARGV: now, 'most count per group-most group-count group-per' with 0 for no limit, or '' for none at all. Reply: 1.
-- include: allow_oom
allow_oom()
if ARGV[2] == '' then call('HDEL', stem .. 'meta', 'pace') else call('HSET', stem .. 'meta', 'pace', ARGV[2]) end
-- groups at the old limit are looked at again, in portions, by the claims that follow
if call('EXISTS', stem .. 'full') == 1 then
  call('SUNIONSTORE', stem .. 'reopen', stem .. 'reopen', stem .. 'full')
  call('DEL', stem .. 'full')
end
if call('EXISTS', stem .. 'rested') == 1 then call('ZUNIONSTORE', stem .. 'rested', 1, stem .. 'rested', 'WEIGHTS', 0) end
call('HDEL', stem .. 'meta', 'hungry')
call('PUBLISH', stem .. 'signals', 'w')
return 1
