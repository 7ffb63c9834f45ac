-- pause: stops or restarts claiming. ARGV: now, 1 or 0. Reply: 1.
-- include: allow_oom
allow_oom()
if ARGV[2] == '1' then
  call('HSET', stem .. 'meta', 'paused', 1)
else
  call('HDEL', stem .. 'meta', 'paused')
  call('HDEL', stem .. 'meta', 'hungry')
  call('PUBLISH', stem .. 'signals', 'w')
end
return 1
