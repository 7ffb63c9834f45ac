-- link_dependents, in the slot of the upstream job: registers dependents in another queue.
-- ARGV: now, 1 if the dependents are new: their upstream jobs must have records, m if they are the jobs of batches: the records of members are
-- not kept for them; then pairs: upstream id, '<queue>\0<id>' of the
-- dependent. Reply: per pair the upstream state or 'missing'. Keeps the records of the upstream jobs.
-- include: allow_oom runs kept_records
allow_oom()
local reply = {}
for p = 3, #ARGV, 2 do
  local up = ARGV[p]
  local state = 'missing'
  if call('HEXISTS', stem .. 'jobs', up) == 1 then
    state = find_job(up)
    if ARGV[2] ~= 'm' then keep_record(up, ARGV[p + 1]) end
  elseif ARGV[2] ~= '1' then
    state = call('HGET', stem .. 'fates', up) or 'missing'
  end
  if state ~= 'missing' and state ~= 'done' and state ~= 'dead' and state ~= 'cancelled' then
    call('SADD', stem .. 'deps:' .. up, ARGV[p + 1])
    call('HSET', stem .. 'downs', up, 1)
  end
  reply[#reply + 1] = state
end
return reply
