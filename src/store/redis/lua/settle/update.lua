-- update: changes a waiting job; a new time or priority moves it to the back.
-- ARGV: now, id, a record with the new payload or nothing, priority or nothing, due time or nothing, ms from now or nothing, a line for its
-- history or nothing.
-- Reply: the state in which the job was found, empty if there is none; only blocked, scheduled and ready jobs are changed.
-- include: attempts bytes dequeue_job enqueue_job events runs wake with_payload
local id = ARGV[2]
local old = call('HGET', stem .. 'jobs', id)
if not old then return '' end
local state, run = find_job(id)
if state ~= 'blocked' and state ~= 'scheduled' and state ~= 'ready' then return state end

if ARGV[3] ~= '' then
  local record = with_payload(old, ARGV[3])
  call('HSET', stem .. 'jobs', id, record)
  add_bytes(#record - #old)
end
event('changed', id)
if ARGV[7] ~= '' then append_attempt(id, ARGV[7]) end
local _, attempt, crashes, priority, at, tail = parse_run(run)
local wanted = tonumber(ARGV[4]) or priority
local due = tonumber(ARGV[5]) or (ARGV[6] ~= '' and now + ARGV[6]) or nil
if not due and wanted == priority then return state end

local function write_run(into, time)
  call('HSET', stem .. 'runs', id, table.concat({ into, attempt, crashes, wanted, string.format('%.0f', time), tail }, ' '))
end
if state == 'blocked' then
  write_run('blocked', due or at)
  return state
end
local time = due or (state == 'scheduled' and at or now)
dequeue_job(id, state, run, true)
add_bytes(call('HSTRLEN', stem .. 'jobs', id))
if time > now then
  call('ZADD', stem .. 'scheduled', time, id)
  write_run('scheduled', time)
else
  enqueue_job(id, attempt, crashes, wanted, tail, false, now)
end
wake()
return state
