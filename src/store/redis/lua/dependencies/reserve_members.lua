-- reserve_members, in the slot of the job of a batch: jobs are about to be added to the batch.
-- ARGV: now, id of the job of the batch, queue of the members ('' = this one), their ids…
-- Reply: 'missing', 'closed', or the indexes of the ids that were not reserved before.
-- include: batches runs
local id, queue = ARGV[2], ARGV[3]
local batch = read_batch(id)
if not batch then return 'missing' end
if not is_open_batch(id) then return 'closed' end
local reply = {}
for i = 4, #ARGV do
  local edge = id .. '\0' .. queue .. '\0' .. ARGV[i]
  local held = call('HGET', stem .. 'edges', edge)
  if not held or not is_member_of(batch, held) then
    call('HSET', stem .. 'edges', edge, 'm' .. string.format('%.0f', now))
    reply[#reply + 1] = i - 3
  end
end
if #reply > 0 then
  call('HINCRBY', stem .. 'blocked', id, #reply)
  batch.total = batch.total + #reply
  write_batch(id, batch)
end
return reply
