-- retry_dead: moves dead jobs to the back of their waiting list, counts reset.
-- ARGV: now, a line for the history of each job or nothing, id… Reply: per id 1 or 0.
-- include: attempts bytes enqueue_job events runs wake
local reply, bytes = {}, 0
for i = 3, #ARGV do
  local id = ARGV[i]
  reply[#reply + 1] = call('ZREM', stem .. 'dead', id)
  if reply[#reply] == 1 then
    local _, _, _, priority = parse_run(call('HGET', stem .. 'ended', id))
    call('HDEL', stem .. 'ended', id)
    event('revived', id)
    if ARGV[2] ~= '' then append_attempt(id, ARGV[2]) end
    enqueue_job(id, 0, 0, priority, '', false)
    bytes = bytes + call('HSTRLEN', stem .. 'jobs', id)
  end
end
add_bytes(bytes)
wake()
return reply
