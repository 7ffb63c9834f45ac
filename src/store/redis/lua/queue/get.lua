-- get: jobs by id. ARGV: now, id… Reply: per id: record (nil if unknown), state, run, progress, log, history of attempts.
-- include: runs
local reply = {}
for i = 2, #ARGV do
  local id, r = ARGV[i], 6 * (i - 2)
  local notes = call('HMGET', stem .. 'notes', 'p' .. id, 'l' .. id, 'a' .. id)
  reply[r + 1] = call('HGET', stem .. 'jobs', id)
  reply[r + 2], reply[r + 3] = find_job(id)
  reply[r + 4], reply[r + 5], reply[r + 6] = notes[1], notes[2], notes[3]
end
return reply
