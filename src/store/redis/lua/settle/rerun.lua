-- rerun: moves ended jobs to the back of their waiting list, counts reset.
-- ARGV: now, a line for the history of each job or nothing, the states they may be in, id… Reply: per id 1 or 0.
-- include: attempts bytes enqueue_job events runs wake
local reply, bytes = {}, 0

-- Takes an ended job off the list of its state; false if it is not in one of the states.
local function take_ended(id, run)
  local state = run and parse_run(run)
  if not state or not string.find(ARGV[3], state, 1, true) then return false end
  if call('ZREM', stem .. state, id) == 1 then return true end
  return state == 'done' and call('LREM', stem .. 'recent', 1, id) == 1
end

-- Its children are new ones, with new ids: see job/children.ts.
local function restart_children(id)
  local first, count = string.match(call('HGET', stem .. 'notes', 'c' .. id) or '', '^(%d+) (%d+) ')
  if first then call('HSET', stem .. 'notes', 'c' .. id, string.format('%.0f 0 []', first + count)) end
end

for i = 4, #ARGV do
  local id = ARGV[i]
  local run = call('HGET', stem .. 'ended', id)
  local taken = take_ended(id, run)
  reply[#reply + 1] = taken and 1 or 0
  if taken then
    local _, _, _, priority = parse_run(run)
    call('HDEL', stem .. 'ended', id)
    event('revived', id)
    if ARGV[2] ~= '' then append_attempt(id, ARGV[2]) end
    restart_children(id)
    enqueue_job(id, 0, 0, priority, '', false, now)
    bytes = bytes + call('HSTRLEN', stem .. 'jobs', id)
  end
end
add_bytes(bytes)
wake()
return reply
