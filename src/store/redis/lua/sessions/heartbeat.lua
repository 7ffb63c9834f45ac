-- heartbeat: renews existing sessions. KEYS: list and prefix of one queue, then of each queue its sessions; more than one queue only where there are no slots.
-- ARGV: now, then per queue: worker, lease in ms. Reply: per queue 1, or 0 if the session is gone.
-- include: allow_oom
allow_oom()
local reply = {}
for i = 1, #KEYS - 2 do
  local workers, worker = KEYS[i + 2], ARGV[2 * i]
  local deadline = call('ZSCORE', workers, worker)
  local alive = deadline and tonumber(deadline) >= 0
  if alive then call('ZADD', workers, 'XX', now + ARGV[2 * i + 1], worker) end
  reply[i] = alive and 1 or 0
end
return reply
