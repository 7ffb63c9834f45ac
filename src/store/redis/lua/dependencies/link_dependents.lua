-- link_dependents, in the slot of the upstream job: registers dependents in another queue.
-- ARGV: now, then pairs: upstream id, '<queue>\0<id>' of the dependent. Reply: per pair the upstream state or 'missing'.
-- include: allow_oom runs
allow_oom()
local reply = {}
for p = 2, #ARGV, 2 do
  local up = ARGV[p]
  local state = 'missing'
  if call('HEXISTS', stem .. 'jobs', up) == 1 then
    state = find_job(up)
  else
    state = call('HGET', stem .. 'fates', up) or 'missing'
  end
  if state ~= 'missing' and state ~= 'done' and state ~= 'dead' and state ~= 'cancelled' then
    call('SADD', stem .. 'deps:' .. up, ARGV[p + 1])
    call('HSET', stem .. 'downs', up, 1)
  end
  reply[#reply + 1] = state
end
return reply
