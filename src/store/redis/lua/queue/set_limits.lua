-- set_limits: how many entries may run at once and start per interval.
-- ARGV: now, 'concurrency count per group-concurrency group-count group-per' with 0 for no limit, or '' for no limits, 1 if
-- groups are ordered.
-- Reply: 1.
-- include: allow_oom
allow_oom()
if ARGV[2] == '' then call('HDEL', stem .. 'meta', 'pace') else call('HSET', stem .. 'meta', 'pace', ARGV[2]) end
if ARGV[3] == '1' then
  call('HSET', stem .. 'meta', 'ordered', 1)
else
  call('HDEL', stem .. 'meta', 'ordered')
  call('UNLINK', stem .. 'held')
end
-- the following claims check the groups at the old limit again, a portion at a time
if call('EXISTS', stem .. 'full') == 1 then
  call('SUNIONSTORE', stem .. 'reopen', stem .. 'reopen', stem .. 'full')
  call('DEL', stem .. 'full')
end
if call('EXISTS', stem .. 'rested') == 1 then call('ZUNIONSTORE', stem .. 'rested', 1, stem .. 'rested', 'WEIGHTS', 0) end
call('HDEL', stem .. 'meta', 'hungry')
call('PUBLISH', stem .. 'signals', 'w')
return 1
