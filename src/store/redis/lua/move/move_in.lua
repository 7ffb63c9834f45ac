-- move_in, in the slot of the other queue: jobs arrive. Delivering a message twice is harmless for as long as `arrived` remembers it.
-- ARGV: now, when the messages were read, 1 if they return to the queue they came from, messages (see move_out)…
-- Reply: per message: in; taken (the id or the unique key); or stale (it was read too long ago, and must be read again).
-- include: bytes ended_ids enqueue_job events groups unique_keys wake
local back, reply, bytes = ARGV[3] == '1', {}, 0
local REMEMBERED, TOO_OLD = 2592000000, 300000

local function is_taken(id, key)
  local known = { call('HEXISTS', stem .. 'jobs', id) == 1 }
  find_taken_ids({ id }, known)
  if known[1] then return true end
  local holder = key ~= '' and call('HGET', stem .. 'unique', key)
  if not holder then return false end
  local till = tonumber(string.match(holder, '^%d+'))
  return till == 0 or till > now
end

local function hold_key(key, id, till)
  if till == '' then return end
  call('HSET', stem .. 'unique', key, till .. ' ' .. id)
  if till ~= '0' then call('ZADD', stem .. 'unique_ttl', till, key) else call('ZREM', stem .. 'unique_ttl', key) end
end

local function take_in(job)
  local id, record, state, attempt, crashes, priority, at, tail, progress, log, attempts, key, till = unpack(job)
  call('HSET', stem .. 'jobs', id, record)
  local flags = string.byte(record) - 48
  if flags % 64 >= 32 and not grouped() then begin_groups() end
  if flags % 4 > 0 then call('HSETNX', stem .. 'meta', 'minds', 1) end
  if progress ~= '' then call('HSET', stem .. 'notes', 'p' .. id, progress) end
  if log ~= '' then call('HSET', stem .. 'notes', 'l' .. id, log) end
  -- messages of an earlier version have no line
  if not back then attempts = string.sub(attempts .. (job[16] or ''), -65536) end
  if attempts ~= '' then call('HSET', stem .. 'notes', 'a' .. id, attempts) end
  if job[15] ~= '' then call('HSET', stem .. 'notes', 's' .. id, job[15]) end
  if not back then
    hold_key(key, id, till)
    event('added', id)
  end
  if state == 'scheduled' and at > now then
    call('ZADD', stem .. 'scheduled', at, id)
    call('HSET', stem .. 'runs', id, table.concat({ 'scheduled', attempt, crashes, priority, string.format('%.0f', at), tail }, ' '))
  else
    enqueue_job(id, attempt, crashes, priority, tail, false, now)
  end
  bytes = bytes + #record
end

for i = 4, #ARGV do
  local nonce, packed = string.match(ARGV[i], '^[^%z]*%z([^%z]*)%z(.*)$')
  local job = cmsgpack.unpack(packed)
  local id, key, mine = job[1], job[12], job[14]
  local mark, outcome = nonce .. '\0' .. id, 'in'
  if back then
    -- only if nobody else has finished this move
    if call('HGET', stem .. 'moving', id) == ARGV[i] then
      call('HDEL', stem .. 'moving', id)
      if mine == 1 then call('ZREM', stem .. 'ids', id) end
      take_in(job)
    end
  elseif now - ARGV[2] > TOO_OLD then
    outcome = 'stale'
  elseif not call('ZSCORE', stem .. 'arrived', mark) then
    if is_taken(id, key) then
      outcome = 'taken'
    else
      call('ZADD', stem .. 'arrived', now + REMEMBERED, mark)
      take_in(job)
    end
  end
  reply[#reply + 1] = outcome
end
if bytes > 0 then
  add_bytes(bytes)
  wake()
end
return reply
