-- add: jobs of any kind, in order.
-- ARGV: now, most entries that may wait ('' = any), most bytes, then per job: id, record, priority, at ('' = use delay),
--   delay, unique key, unique mode (keep, extend, replace), unique ttl, 'keep-ms keep-count unique-key', number of needs, then per need: policy
--   (s or f), upstream queue ('' = this one), upstream id.
-- Reply: per job that was not created: index, 'duplicate', 'replaced', 'extended' or 'full', existing id. Or: 'unknown', upstream id.
local items, batch, i = {}, {}, 4
while i <= #ARGV do
  local item = { at = i, needs = {} }
  local n = tonumber(ARGV[i + 9])
  for k = 1, n do item.needs[k] = i + 7 + 3 * k end
  for _, p in ipairs(item.needs) do
    if ARGV[p + 1] == '' and not batch[ARGV[p + 2]] and call('HEXISTS', stem .. 'jobs', ARGV[p + 2]) == 0 then
      return { 'unknown', ARGV[p + 2] }
    end
  end
  batch[ARGV[i]] = true
  items[#items + 1] = item
  i = i + 10 + 3 * n
end

local meta = call('HMGET', stem .. 'meta', 'stale', 'bytes', 'grouped')
local room, space = math.huge, math.huge
if ARGV[2] ~= '' then
  room = tonumber(ARGV[2]) - (call('LLEN', list) + call('LLEN', stem .. 'ready') + call('ZCARD', stem .. 'prio')
    + call('ZCARD', stem .. 'scheduled') + call('HLEN', stem .. 'blocked') - (tonumber(meta[1]) or 0)
    + (tonumber(meta[3]) or 0))
end
if ARGV[3] ~= '' then space = tonumber(ARGV[3]) - (tonumber(meta[2]) or 0) end

local function taken(p)
  if call('HEXISTS', stem .. 'jobs', ARGV[p]) == 1 then return ARGV[p] end
  local key = ARGV[p + 5]
  if key == '' then return nil end
  local holder = call('HGET', stem .. 'unique', key)
  if not holder then return nil end
  local until_, id = string.match(holder, '^(%d+) (.*)$')
  if until_ == '0' or tonumber(until_) > now then return id end
  return nil
end

local function lock(p, id)
  local key, ttl = ARGV[p + 5], tonumber(ARGV[p + 7])
  if key == '' then return end
  local ends = ttl > 0 and now + ttl or 0
  call('HSET', stem .. 'unique', key, ends .. ' ' .. id)
  -- a former holder's time limit must not end this one's
  if ends > 0 then
    call('ZADD', stem .. 'unique_ttl', ends, key)
  else
    call('ZREM', stem .. 'unique_ttl', key)
  end
end

-- Where the payload begins in a record: see codec.ts.
local function body_at(record)
  local flags, offset = string.byte(record) - 48, 11
  if flags % 2 == 1 then offset = string.find(record, ';', offset, true) + 1 end
  for _, bit in ipairs({ 2, 32, 4 }) do
    if flags % (2 * bit) >= bit then
      local size = string.match(record, '^%d+', offset)
      offset = offset + #size + 1 + size
    end
  end
  return offset
end

-- The old record with the new one's payload, which may be text or bytes (bit 8).
local function with_payload(old, new)
  local flags, bytes = string.byte(old) - 48, (string.byte(new) - 48) % 16 >= 8
  if bytes ~= (flags % 16 >= 8) then flags = flags + (bytes and 8 or -8) end
  return string.char(48 + flags) .. string.sub(old, 2, body_at(old) - 1) .. string.sub(new, body_at(new))
end

-- A second job with the key of one that waits: what the mode says is done to that one. False when it no longer waits.
local function renew(p, id)
  local old = call('HGET', stem .. 'jobs', id)
  local state, run = locate(id)
  if not old or (state ~= 'blocked' and state ~= 'scheduled' and state ~= 'ready') then return false end
  if ARGV[p + 6] == 'replace' then
    local record = with_payload(old, ARGV[p + 1])
    call('HSET', stem .. 'jobs', id, record)
    weigh(#record - #old)
  end
  local timed = ARGV[p + 3] ~= '' or tonumber(ARGV[p + 4]) > 0
  local _, attempt, crashes, priority, due, tail = parse(run)
  -- what is due does not wait again, though nobody has promoted it yet
  if timed and attempt == 0 and (state == 'blocked' or (state == 'scheduled' and due > now)) then
    local at = ARGV[p + 3] ~= '' and tonumber(ARGV[p + 3]) or now + ARGV[p + 4]
    call('HSET', stem .. 'runs', id, state .. ' 0 ' .. crashes .. ' ' .. priority .. ' ' .. at .. ' ' .. tail)
    if state == 'scheduled' then call('ZADD', stem .. 'scheduled', at, id) end
  end
  if tonumber(ARGV[p + 7]) > 0 then lock(p, id) end
  return true
end

-- Registers the edges of a job whose upstreams have not ended. Returns how many, and what already failed it.
local function wire(id, needs)
  local left, failed = 0, nil
  for _, p in ipairs(needs) do
    local policy, queue, up = ARGV[p], ARGV[p + 1], ARGV[p + 2]
    local state = queue == '' and (locate(up)) or 'ready'
    -- an upstream of this very batch that was refused as full leaves nothing to wait for
    if queue == '' and call('HEXISTS', stem .. 'jobs', up) == 0 then state = 'cancelled' end
    if state == 'done' or (policy == 'f' and (state == 'dead' or state == 'cancelled')) then
      -- this one is met
    elseif state == 'dead' or state == 'cancelled' then
      failed = 'an upstream job ended ' .. state .. ': ' .. up
    else
      call('HSET', stem .. 'edges', id .. '\0' .. queue .. '\0' .. up, policy)
      left = left + 1
      if queue == '' then
        call('SADD', stem .. 'deps:' .. up, '\0' .. id)
        call('HSET', stem .. 'downs', up, 1)
      end
    end
  end
  return left, failed
end

local reply, bytes, fresh = {}, 0, false
for index, item in ipairs(items) do
  local p = item.at
  local id, record, priority = ARGV[p], ARGV[p + 1], tonumber(ARGV[p + 2])
  local existing = taken(p)
  if existing then
    local mode = ARGV[p + 6]
    local renewed = existing ~= id and (mode == 'replace' or mode == 'extend') and renew(p, existing)
    if renewed then
      fresh = true
      event('changed', existing)
    end
    reply[#reply + 1] = index
    reply[#reply + 1] = renewed and (mode == 'replace' and 'replaced' or 'extended') or 'duplicate'
    reply[#reply + 1] = existing
  elseif room < 1 or space < #record then
    reply[#reply + 1] = index
    reply[#reply + 1] = 'full'
    reply[#reply + 1] = ''
  else
    room, space = room - 1, space - #record
    local at = ARGV[p + 3] ~= '' and tonumber(ARGV[p + 3]) or now + ARGV[p + 4]
    call('HSET', stem .. 'jobs', id, record)
    local flags = string.byte(record) - 48
    if flags % 64 >= 32 and not grouped() then begin_groups() end
    if flags % 4 > 0 then call('HSETNX', stem .. 'meta', 'minds', 1) end
    event('added', id)
    local left, failed = wire(id, item.needs)
    if failed then
      event('cancelled', id, failed)
      local keep, count = string.match(ARGV[p + 8], '^(%d+) (%d+)')
      close('cancelled', { id }, { 'cancelled 0 0 ' .. priority .. ' ' .. now .. ' ' .. failed }, { tonumber(keep) }, tonumber(count))
    else
      lock(p, id)
      bytes = bytes + #record
      if left > 0 then
        call('HSET', stem .. 'blocked', id, left)
        call('HSET', stem .. 'runs', id, 'blocked 0 0 ' .. priority .. ' ' .. at .. ' ' .. ARGV[p + 8])
      elseif at > now then
        call('ZADD', stem .. 'scheduled', at, id)
        call('HSET', stem .. 'runs', id, 'scheduled 0 0 ' .. priority .. ' ' .. at .. ' ')
        fresh = true
      else
        line_up(id, 0, 0, priority, '', false)
        fresh = true
      end
    end
  end
end
weigh(bytes)
if fresh then wake() end
return reply
