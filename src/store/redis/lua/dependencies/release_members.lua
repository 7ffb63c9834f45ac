-- release_members, in the slot of the job of a batch: reserved members were not added after all.
-- ARGV: now, id of the job of the batch, queue of the members ('' = this one), their ids…
-- include: allow_oom dependencies
allow_oom()
local id, queue = ARGV[2], ARGV[3]
local released = 0
for i = 4, #ARGV do released = released + call('HDEL', stem .. 'edges', id .. '\0' .. queue .. '\0' .. ARGV[i]) end
if released == 0 then return 0 end
local batch = read_batch(id)
if batch then
  batch.total = batch.total - released
  write_batch(id, batch)
end
local was, attempt, crashes, priority, at, tail = parse_run(call('HGET', stem .. 'runs', id))
if was ~= 'blocked' or string.sub(tail, 1, 1) == 'p' then return released end
if call('HINCRBY', stem .. 'blocked', id, -released) <= 0 then unblock_job(id, attempt, crashes, priority, at) end
return released
