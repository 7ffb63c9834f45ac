-- Unique keys of jobs being added. `p` is the index of a job's first argument: see add.lua.
-- include: queue runs bytes with_payload ended_ids

-- The existing job with the id, or the unique key, of a new job.
local function find_holder(p)
  local known = { call('HEXISTS', stem .. 'jobs', ARGV[p]) == 1 }
  find_taken_ids({ ARGV[p] }, known)
  if known[1] then return ARGV[p] end
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
  -- the expiry of a previous holder must not apply to this one
  if ends > 0 then
    call('ZADD', stem .. 'unique_ttl', ends, key)
  else
    call('ZREM', stem .. 'unique_ttl', key)
  end
end

-- A new job has the unique key of a waiting one: changes that one as the mode says. False if it no longer waits.
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
  -- a job that is already due is not delayed again, even if no sweep or claim has promoted it yet
  if timed and attempt == 0 and (state == 'blocked' or (state == 'scheduled' and due > now)) then
    local at = ARGV[p + 3] ~= '' and tonumber(ARGV[p + 3]) or now + ARGV[p + 4]
    call('HSET', stem .. 'runs', id, state .. ' 0 ' .. crashes .. ' ' .. priority .. ' ' .. at .. ' ' .. tail)
    if state == 'scheduled' then call('ZADD', stem .. 'scheduled', at, id) end
  end
  if tonumber(ARGV[p + 7]) > 0 then hold_unique_key(p, id) end
  return true
end
