-- sweep_quiet: the sweep of queues in which there is nothing to do. KEYS: of each queue its list and its prefix; more than one queue only where there are no slots.
-- ARGV: now, then per queue: lease in ms, ms within which another sweep is enough. Reply: per queue 1, or 0 if it needs a whole sweep.
-- include: allow_oom quiet
allow_oom()
local reply = {}
for i = 1, #KEYS / 2 do
  local list, stem, lease, every = KEYS[2 * i - 1], KEYS[2 * i], tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local meta = call('HMGET', stem .. 'meta', 'swept', 'hungry')
  local age = meta[1] and now - meta[1] or -1
  if age >= 0 and age < every then
    reply[i] = 1
  elseif age < 0 or age > lease or call('ZCOUNT', stem .. 'workers', '-inf', now) > 0 or not is_quiet(list, stem, meta[2]) then
    reply[i] = 0
  else
    call('HSET', stem .. 'meta', 'swept', now)
    reply[i] = 1
  end
end
return reply
