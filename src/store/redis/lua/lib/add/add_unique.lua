-- Unique keys of jobs on their way in. `p` is where the arguments of a job begin: see add.lua.
-- include: queue runs bytes record

-- The job that has the id, or holds the key, of a new one.
local function find_holder(p)
  if call('HEXISTS', stem .. 'jobs', ARGV[p]) == 1 then return ARGV[p] end
  local key = ARGV[p + 5]
  if key == '' then return nil end
  local holder = call('HGET', stem .. 'unique', key)
  if not holder then return nil end
  local until_, id = string.match(holder, '^(%d+) (.*)$')
  if until_ == '0' or tonumber(until_) > now then return id end
  return nil
end

local function hold_unique_key(p, id)
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

-- The old record with the new one's payload, which may be text or bytes (bit 8).
local function with_payload(old, new)
  local flags, bytes = string.byte(old) - 48, (string.byte(new) - 48) % 16 >= 8
  if bytes ~= (flags % 16 >= 8) then flags = flags + (bytes and 8 or -8) end
  local _, _, _, old_body = record_head(old)
  local _, _, _, new_body = record_head(new)
  return string.char(48 + flags) .. string.sub(old, 2, old_body - 1) .. string.sub(new, new_body)
end

-- A second job with the key of one that waits: what the mode says is done to that one. False when it no longer waits.
local function update_holder(p, id)
  local old = call('HGET', stem .. 'jobs', id)
  local state, run = find_job(id)
  if not old or (state ~= 'blocked' and state ~= 'scheduled' and state ~= 'ready') then return false end
  if ARGV[p + 6] == 'replace' then
    local record = with_payload(old, ARGV[p + 1])
    call('HSET', stem .. 'jobs', id, record)
    add_bytes(#record - #old)
  end
  local timed = ARGV[p + 3] ~= '' or tonumber(ARGV[p + 4]) > 0
  local _, attempt, crashes, priority, due, tail = parse_run(run)
  -- what is due does not wait again, though nobody has promoted it yet
  if timed and attempt == 0 and (state == 'blocked' or (state == 'scheduled' and due > now)) then
    local at = ARGV[p + 3] ~= '' and tonumber(ARGV[p + 3]) or now + ARGV[p + 4]
    call('HSET', stem .. 'runs', id, state .. ' 0 ' .. crashes .. ' ' .. priority .. ' ' .. at .. ' ' .. tail)
    if state == 'scheduled' then call('ZADD', stem .. 'scheduled', at, id) end
  end
  if tonumber(ARGV[p + 7]) > 0 then hold_unique_key(p, id) end
  return true
end
