-- get: jobs by id. ARGV: now, id… Reply: per id: record (nil if unknown), state, run, progress, log, history of attempts,
-- children, counts of a batch, last values of progress.
-- include: runs
local reply = {}
for i = 2, #ARGV do
  local id, r = ARGV[i], 9 * (i - 2)
  local notes = call('HMGET', stem .. 'notes', 'p' .. id, 'l' .. id, 'a' .. id, 'c' .. id, 'b' .. id, 's' .. id)
  reply[r + 1] = call('HGET', stem .. 'jobs', id)
  reply[r + 2], reply[r + 3] = find_job(id)
  for k = 1, 6 do reply[r + 3 + k] = notes[k] end
end
return reply
