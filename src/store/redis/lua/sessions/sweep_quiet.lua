-- sweep_quiet: the sweep of queues in which there is nothing to do. KEYS: of each queue its list and its prefix; more than one queue only where there are no slots.
-- ARGV: now, then per queue: lease in ms. Reply: per queue 1, or 0 if it needs a whole sweep.
-- include: allow_oom quiet
allow_oom()
local reply = {}
for i = 1, #KEYS / 2 do
  local list, stem, lease = KEYS[2 * i - 1], KEYS[2 * i], tonumber(ARGV[i + 1])
  local swept = tonumber(call('HGET', stem .. 'meta', 'swept'))
  local is_due = not swept or now < swept or now - swept > lease
  if is_due or call('ZCOUNT', stem .. 'workers', '-inf', now) > 0 or not is_quiet(list, stem) then
    reply[i] = 0
  else
    call('HSET', stem .. 'meta', 'swept', now)
    reply[i] = 1
  end
end
return reply
