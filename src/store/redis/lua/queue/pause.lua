-- pause: stops or restarts claiming, which also closes the breaker. ARGV: now, 1 or 0. Reply: 1.
-- include: allow_oom breaker
allow_oom()
if ARGV[2] == '1' then
  call('HSET', stem .. 'meta', 'paused', 1)
else
  local gate = get_breaker()
  if gate and gate.till > 0 then event('breaker', '', 'closed') end
  call('HDEL', stem .. 'meta', 'paused', 'broken')
  call('HDEL', stem .. 'meta', 'hungry')
  call('PUBLISH', stem .. 'signals', 'w')
end
return 1
