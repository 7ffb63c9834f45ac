-- move_out, in the slot of the first queue: takes jobs out of it, to be delivered to another one.
-- ARGV: now, name of the other queue, nonce of the move, a line for the histories of the jobs or nothing, then per job: id, unique key or nothing.
-- Reply: per job: outcome (moved, unknown, started, linked), message or nothing. A message stays in `moving` until it has been delivered, and keeps
-- the id and the unique key taken.
-- A message is '<other queue>\0<nonce>\0' and a packed list: id, record, state, attempt, crashes, priority, time, tail, progress, log, attempts,
-- unique key, end of the unique key ('' if not held), 1 if the id was not taken already, last values of progress, a line for
-- the history if it arrives.
-- include: bytes dequeue_job events notes runs
local function is_linked(id)
  if call('HEXISTS', stem .. 'downs', id) == 1 then return true end
  -- it has children, or is the job of a batch
  if call('HEXISTS', stem .. 'notes', 'c' .. id) + call('HEXISTS', stem .. 'notes', 'b' .. id) > 0 then return true end
  -- somebody who only waits for its end does not count
  return (tonumber(call('HGET', stem .. 'kept', id)) or 0) > call('HEXISTS', stem .. 'kept_by', id .. '\0@')
end

local function key_end(key, id)
  local holder = key ~= '' and call('HGET', stem .. 'unique', key)
  if not holder then return '' end
  local till, of = string.match(holder, '^(%d+) (.*)$')
  return of == id and till or ''
end

local function take_out(id, key, record, state, run)
  local _, attempt, crashes, priority, at, tail = parse_run(run)
  if state == 'dead' then
    call('ZREM', stem .. 'dead', id)
    call('HDEL', stem .. 'ended', id)
    attempt, crashes, tail = 0, 0, ''
  else
    dequeue_job(id, state, run)
  end
  local notes = call('HMGET', stem .. 'notes', 'p' .. id, 'l' .. id, 'a' .. id, 's' .. id)
  drop_notes(id)
  call('HDEL', stem .. 'jobs', id)
  if call('HDEL', stem .. 'awaited', id) == 1 then call('PUBLISH', stem .. 'signals', 'f' .. id) end
  local mine = call('ZADD', stem .. 'ids', 'NX', now + 2592000000, id)
  local message = ARGV[2] .. '\0' .. ARGV[3] .. '\0' .. cmsgpack.pack({ id, record, state, attempt, crashes, priority, at, tail,
    notes[1] or '', notes[2] or '', notes[3] or '', key, key_end(key, id), mine, notes[4] or '', ARGV[4] })
  call('HSET', stem .. 'moving', id, message)
  return message
end

local reply = {}
for p = 5, #ARGV, 2 do
  local id, outcome, message = ARGV[p], 'moved', ''
  local record = call('HGET', stem .. 'jobs', id)
  local state, run = find_job(id)
  if not record then
    message = call('HGET', stem .. 'moving', id) or ''
    if message == '' then outcome = 'unknown' end
  elseif call('HEXISTS', stem .. 'hidden', id) == 1 then
    outcome = 'unknown'
  elseif state == 'active' or state == 'done' or state == 'cancelled' then
    outcome = 'started'
  elseif state == 'blocked' or is_linked(id) then
    outcome = 'linked'
  else
    message = take_out(id, ARGV[p + 1], record, state, run)
  end
  reply[#reply + 1] = outcome
  reply[#reply + 1] = message
end
return reply
