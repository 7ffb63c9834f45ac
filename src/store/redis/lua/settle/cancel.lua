-- cancel: ends jobs that have not ended.
-- ARGV: now, a line for the history of each job or nothing, then per job: id, keep-ms, keep-count, unique key to free, ms for which the id stays taken.
-- Reply: outbox flag, then per job 1 or 0.
-- include: allow_oom attempts close_jobs dependencies dequeue_job events runs unique_keys
allow_oom()

local reply, ended = { 0 }, {}
for p = 3, #ARGV, 5 do
  local id = ARGV[p]
  local size = call('HSTRLEN', stem .. 'jobs', id)
  local state, run = find_job(id)
  local open = size > 0 and state ~= 'done' and state ~= 'dead' and state ~= 'cancelled'
  reply[#reply + 1] = open and 1 or 0
  if open then
    local counts, token = dequeue_job(id, state, run)
    if token then call('PUBLISH', stem .. 'signals', 'c' .. token) end
    if ARGV[p + 3] ~= '' then free_unique_key(ARGV[p + 3], id) end
    event('cancelled', id, 'cancelled')
    if ARGV[2] ~= '' then append_attempt(id, ARGV[2]) end
    close_jobs('cancelled', { id }, { 'cancelled ' .. counts .. ' ' .. now .. ' cancelled' }, { tonumber(ARGV[p + 1]) }, tonumber(ARGV[p + 2]), { tonumber(ARGV[p + 4]) })
    ended[#ended + 1] = id
    ended[#ended + 1] = 'cancelled'
  end
end
if #ended > 0 then reply[1] = notify_dependents(ended) end
return reply
