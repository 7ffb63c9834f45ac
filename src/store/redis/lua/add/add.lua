-- add: jobs of any kind, in order.
-- ARGV: now, maximum number of waiting entries ('' = no limit), maximum bytes, then per job: id, record, priority,
--   at ('' = use delay), delay, unique key, unique mode (keep, extend, replace), unique ttl,
--   'keep-ms keep-count:id-window unique-key', 1 to replace an ended job of this id, policy of a batch if
--   this is the job of one, '<queue>\0<id>' of the batch it is a member of, the same of its parent, number of dependencies, then per dependency:
--   policy (s or f), upstream queue ('' = this one), upstream id.
-- Reply: per job that was not created: index, 'duplicate', 'replaced', 'extended' or 'full', existing id.
--   Or: 'unknown', upstream id.
-- include: add_unique add_dependencies batches groups enqueue_job events close_jobs remove_ended bytes wake
local items, batch, i = {}, {}, 4
while i <= #ARGV do
  local item = { at = i, needs = {} }
  local n = tonumber(ARGV[i + 13])
  for k = 1, n do item.needs[k] = i + 11 + 3 * k end
  for _, p in ipairs(item.needs) do
    if ARGV[p + 1] == '' and not batch[ARGV[p + 2]] and call('HEXISTS', stem .. 'jobs', ARGV[p + 2]) == 0 then
      return { 'unknown', ARGV[p + 2] }
    end
  end
  batch[ARGV[i]] = true
  items[#items + 1] = item
  i = i + 14 + 3 * n
end

local meta = call('HMGET', stem .. 'meta', 'stale', 'bytes', 'grouped')
local room, space = math.huge, math.huge
if ARGV[2] ~= '' then
  room = tonumber(ARGV[2]) - (call('LLEN', list) + call('LLEN', stem .. 'ready') + call('ZCARD', stem .. 'prio')
    + call('ZCARD', stem .. 'scheduled') + call('HLEN', stem .. 'blocked') - (tonumber(meta[1]) or 0)
    + (tonumber(meta[3]) or 0))
end
if ARGV[3] ~= '' then space = tonumber(ARGV[3]) - (tonumber(meta[2]) or 0) end

-- Whether a parent, if it is in this queue, has not ended: sweeps look after those in other queues.
local function is_held_by(parent)
  if string.sub(parent, 1, 1) ~= '\0' then return true end
  local id = string.sub(parent, 2)
  return call('HEXISTS', stem .. 'jobs', id) == 1 and call('HEXISTS', stem .. 'ended', id) == 0
end

local reply, bytes, fresh = {}, 0, false
for index, item in ipairs(items) do
  local p = item.at
  local id, record, priority = ARGV[p], ARGV[p + 1], tonumber(ARGV[p + 2])
  if ARGV[p + 9] == '1' then remove_ended(id) end
  local existing = find_holder(p)
  if existing then
    local mode = ARGV[p + 6]
    local renewed = existing ~= id and (mode == 'replace' or mode == 'extend') and update_holder(p, existing)
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
    local left, failed = link_upstreams(id, item.needs, 'an upstream job')
    local policy, batch, parent = ARGV[p + 10], ARGV[p + 11], ARGV[p + 12]
    if parent ~= '' and is_held_by(parent) then keep_record(id, parent) end
    if batch ~= '' and not failed then
      call('SADD', stem .. 'deps:' .. id, batch)
      call('HSET', stem .. 'downs', id, 1)
    end
    if policy ~= '' and not failed then
      open_batch(id, policy)
      left = left + 1
    end
    if failed then
      event('cancelled', id, failed)
      local keep, count, window = string.match(ARGV[p + 8], '^(%d+) (%d+):?(%d*)')
      close_jobs('cancelled', { id }, { 'cancelled 0 0 ' .. priority .. ' ' .. now .. ' ' .. failed }, { tonumber(keep) }, tonumber(count), { tonumber(window) or 0 })
    else
      hold_unique_key(p, id)
      bytes = bytes + #record
      if left > 0 then
        call('HSET', stem .. 'blocked', id, left)
        call('HSET', stem .. 'runs', id, 'blocked 0 0 ' .. priority .. ' ' .. at .. ' ' .. ARGV[p + 8])
      elseif at > now then
        call('ZADD', stem .. 'scheduled', at, id)
        call('HSET', stem .. 'runs', id, 'scheduled 0 0 ' .. priority .. ' ' .. at .. ' ')
        fresh = true
      else
        enqueue_job(id, 0, 0, priority, '', false)
        fresh = true
      end
    end
  end
end
add_bytes(bytes)
if fresh then wake() end
return reply
