-- add: jobs of any kind, in order.
-- ARGV: now, most entries that may wait ('' = any), most bytes, then per job: id, record, priority, at ('' = use delay),
--   delay, unique key, unique scope, unique ttl, 'keep-ms keep-count unique-key', number of needs, then per need: policy
--   (s or f), upstream queue ('' = this one), upstream id.
-- Reply: per job that was not created: index, 'duplicate' or 'full', existing id. Or: 'unknown', upstream id.
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

local function lock(p)
  local key, ttl = ARGV[p + 5], tonumber(ARGV[p + 7])
  if key == '' then return end
  local ends = ttl > 0 and now + ttl or 0
  call('HSET', stem .. 'unique', key, ends .. ' ' .. ARGV[p])
  -- a former holder's time limit must not end this one's
  if ends > 0 then
    call('ZADD', stem .. 'unique_ttl', ends, key)
  else
    call('ZREM', stem .. 'unique_ttl', key)
  end
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
    reply[#reply + 1] = index
    reply[#reply + 1] = 'duplicate'
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
    if flags % 64 >= 32 and not grouped() then
      call('HSET', stem .. 'meta', 'groups', 1)
      has_groups = true
    end
    if flags % 4 > 0 then call('HSETNX', stem .. 'meta', 'minds', 1) end
    local left, failed = wire(id, item.needs)
    if failed then
      local keep, count = string.match(ARGV[p + 8], '^(%d+) (%d+)')
      close('cancelled', { id }, { 'cancelled 0 0 ' .. priority .. ' ' .. now .. ' ' .. failed }, { tonumber(keep) }, tonumber(count))
    else
      lock(p)
      bytes = bytes + #record
      if left > 0 then
        call('HSET', stem .. 'blocked', id, left)
        call('HSET', stem .. 'runs', id, 'blocked 0 0 ' .. priority .. ' ' .. at .. ' ' .. ARGV[p + 8])
      elseif at > now then
        call('ZADD', stem .. 'scheduled', at, id)
        call('HSET', stem .. 'runs', id, 'scheduled 0 0 ' .. priority .. ' ' .. at .. ' ')
        fresh = true
      else
        place(id, 0, 0, priority, '', false)
        fresh = true
      end
    end
  end
end
weigh(bytes)
if fresh then wake() end
return reply
