-- Shared by the scripts of a queue: each gets what it uses (scripts.ts), so a statement begins with `local` at the start of a line
-- and uses only what stands before it. KEYS[1] is the queue's plain list of raw tasks, KEYS[2] the stem of its companion
-- keys (same slot). ARGV[1] is the time in milliseconds, or '' for the server's clock.
--   jobs   hash id -> record, never rewritten
--   ready  list of ids | prio zset of seq..id | scheduled zset by time | blocked hash id -> upstreams left
--   runs   hash id -> 'state attempt crashes priority at tail' of jobs that wait; none for a fresh one of priority 0
--   active hash id -> 'token crashes priority at worker', and '\0group' for a job of a group | leased hash token -> 'worker\0task' for raw tasks,
--          or a sheaf of those that were taken by hand at once | over hash token -> what of a sheaf has ended: see sheaf.lua
--   ended  hash id -> 'state attempt crashes priority at tail' | done, dead, cancelled zsets by the end of keeping |
--          recent list of done jobs that are kept as by default, newest first: a list costs a fifth of a sorted set
--   fates  hash id -> final state, for ten minutes, of jobs that dependents in other queues wait for (fates_ttl zset)
--   group:<name> zset of ids by priority and sequence, the line of a group | turns list of groups that may give, next at the
--          tail | lines zset of the names of groups that have one, each of which is in turns, in full (set: at their
--          limit), in reopen (set: to be looked at again) or in rested (zset by the time their rate lets them go on)
--   holds  hash group -> active jobs | rates hash '' -> 'start count' of the queue; rate:<group> the same of a group
--   events stream of what happened, written only while somebody asks for it (meta: watched, a time)
--   marks  hash source -> how far jobs carried from there have come; it outlives obliterate
--   seals  set of unique raw tasks that wait | sealed hash task -> token of the lease that carries the seal
--   raw    set of sessions whose raw tasks return uncounted
--   workers zset by deadline (-1: declared dead) | reserved zset of ids by deadline | meta hash of counters and flags
-- A token is '<attempt>.<claim>.<nonce>', the claim being '<first sequence>-<three digits>', so that nothing but the
-- digits has to be rendered for each job. In place of an attempt, that of a raw task has the number of tasks in its sheaf.
local list, stem = KEYS[1], KEYS[2]
local call = redis.call

local function clock()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local now = clock()

-- Exempts the script from the out-of-memory check, on every server version: what follows frees more than it takes.
local function allow_oom() call('HDEL', stem .. 'meta', '') end

-- Keys of a queue that hold what obliterate forgets. Not among them: workers, info, raw, meta, rates, marks, schedules, ticks, lasts.
local COMPANIONS = { 'ready', 'prio', 'scheduled', 'blocked', 'jobs', 'runs', 'active', 'leased', 'over',
  'seals', 'sealed', 'ended', 'reserved', 'recent', 'done', 'dead', 'cancelled',
  'unique', 'unique_ttl', 'ghosts', 'notes', 'awaited', 'edges', 'downs', 'outbox', 'fates', 'fates_ttl',
  'turns', 'lines', 'full', 'reopen', 'rested', 'holds', 'events' }

-- Whether a lease has this very token: a run of an active job begins with it.
local function has_token(run, token) return run and string.match(run, '^%S+') == token end

local function parse(run)
  if not run then return 'ready', 0, 0, 0, 0, '' end
  local state, attempt, crashes, priority, at, tail = string.match(run, '^(%a+) (%d+) (%d+) (%-?%d+) (%d+) ?(.*)$')
  return state, tonumber(attempt), tonumber(crashes), tonumber(priority), tonumber(at), tail
end

-- Where a job is: its state and its run, if it has one. Only for ids that have a record.
local function locate(id)
  local run = call('HGET', stem .. 'runs', id)
  if run then return (parse(run)), run end
  run = call('HGET', stem .. 'active', id)
  if run then return 'active', run end
  run = call('HGET', stem .. 'ended', id)
  if run then return (parse(run)), run end
  return 'ready', false
end

-- Whether nothing is in the queue, nobody works on it, and nothing was set for it.
local function is_unused()
  local keys = { list }
  for _, name in ipairs({ 'jobs', 'leased', 'unique', 'edges', 'downs', 'outbox', 'fates', 'seals', 'sealed', 'lines', 'events',
    'workers', 'marks', 'schedules' }) do
    keys[#keys + 1] = stem .. name
  end
  if call('EXISTS', unpack(keys)) > 0 then return false end
  local set = call('HMGET', stem .. 'meta', 'paused', 'pace', 'watched')
  return not set[1] and not set[2] and (tonumber(set[3]) or 0) <= now
end

-- told: those who take raw tasks by hand have heard of it, with a number
local function wake(told)
  if call('HDEL', stem .. 'meta', 'hungry') == 0 then return end
  call('PUBLISH', stem .. 'signals', 'w')
  if not told then call('PUBLISH', stem .. 'news', 'w') end
end

-- Tells workers of the original Worqr, which listen to channels of their own; ''  where nobody can. An account may lack the channel.
local function tell_original(channel, message)
  if channel ~= '' then redis.pcall('PUBLISH', channel, message) end
end

-- How many raw tasks are leased: meta counts those that share a field with another.
local function count_leased()
  return call('HLEN', stem .. 'leased') + (call('HGET', stem .. 'meta', 'sheaved') or 0)
end

-- The seal of a unique task goes to the first equal one that is leased. The token of each task comes from a function.
local function seal(tasks, token_of)
  if call('EXISTS', stem .. 'seals') == 0 then return end
  for i, task in ipairs(tasks) do
    if call('SREM', stem .. 'seals', task) == 1 then call('HSET', stem .. 'sealed', task, token_of(i)) end
  end
end

-- A lease ends: the seal it carries is free, or waits again with a task that goes back.
local function unseal(token, task, back)
  if call('HGET', stem .. 'sealed', task) ~= token then return end
  call('HDEL', stem .. 'sealed', task)
  if back then call('SADD', stem .. 'seals', task) end
end

-- Whether anybody wants to know what happens here.
local watching
local function watched()
  if watching == nil then
    local till = call('HGET', stem .. 'meta', 'watched')
    watching = till and tonumber(till) > now or false
  end
  return watching
end

-- Records that something happened to a job; listeners are told once per script.
local announced = false
local function event(kind, id, info)
  if not watched() then return end
  call('XADD', stem .. 'events', 'MAXLEN', '~', 10000, '*', kind, id, now, info or '')
  if not announced then call('PUBLISH', stem .. 'signals', 'e') end
  announced = true
end

-- How many may run at once and start per interval, if anything was said about it.
local paced, pace
local function get_pace()
  if paced == nil then
    local text = call('HGET', stem .. 'meta', 'pace')
    paced = text ~= false
    if paced then
      pace = {}
      pace.most, pace.count, pace.per, pace.group_most, pace.group_count, pace.group_per =
        string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
      for name, value in pairs(pace) do pace[name] = tonumber(value) end
    end
  end
  return paced and pace
end

-- The window of a rate: when it began, and how many have started in it.
local function window(text, per)
  local start, count = string.match(text or '', '^(%d+) (%d+)$')
  if not start or now >= start + per or now < tonumber(start) then return now, 0 end
  return tonumber(start), tonumber(count)
end

-- A small hash is a flat list in which every look-up is a walk; one long value makes it a table for good. No id is empty,
-- and no group's name.
local function pad(hash) call('HSETNX', stem .. hash, '', string.rep(' ', 65)) end

-- Only queues that have had a job with a group pay for groups.
local has_groups
local function grouped()
  if has_groups == nil then has_groups = call('HEXISTS', stem .. 'meta', 'groups') == 1 end
  return has_groups
end

-- This queue has groups from now on.
local function begin_groups()
  if call('HSETNX', stem .. 'meta', 'groups', 1) == 1 then pad('holds') end
  has_groups = true
end

-- The group in a record: see codec.ts.
local function group_of(record)
  local flags, offset = string.byte(record) - 48, 11
  if flags % 64 < 32 then return nil end
  if flags % 2 == 1 then offset = string.find(record, ';', offset, true) + 1 end
  if flags % 4 >= 2 then
    local size = string.match(record, '^%d+', offset)
    offset = offset + #size + 1 + size
  end
  local size = string.match(record, '^%d+', offset)
  offset = offset + #size + 1
  return string.sub(record, offset, offset + size - 1)
end

-- Where a job stands in the line of its group: by priority, then by sequence. Two that wait at the same time are never
-- 2^33 apart, so the sequence cannot reach over into another priority.
local function rank(priority, seq) return string.format('%.0f', -priority * 8589934592 + seq) end

-- Takes a group that may not go on now out of the round; false when it may.
local function shelve(group)
  local rule = get_pace()
  if not rule then return false end
  if rule.group_most > 0 and (tonumber(call('HGET', stem .. 'holds', group)) or 0) >= rule.group_most then
    call('SADD', stem .. 'full', group)
    return true
  end
  if rule.group_count == 0 then return false end
  local start, count = window(call('GET', stem .. 'rate:' .. group), rule.group_per)
  if count < rule.group_count then return false end
  call('ZADD', stem .. 'rested', start + rule.group_per, group)
  return true
end

-- Puts a group that has a line where it belongs now.
local function seat(group)
  if not shelve(group) then call('LPUSH', stem .. 'turns', group) end
end

-- The same for one that was out of the round; its line may have gone meanwhile.
local function reseat(group)
  if call('EXISTS', stem .. 'group:' .. group) == 1 then seat(group) else call('ZREM', stem .. 'lines', group) end
end

-- Leases of groups have ended: their names, and how many of each.
local function free_groups(names, counts)
  local left, none = {}, {}
  for i, held in ipairs(call('HMGET', stem .. 'holds', unpack(names))) do
    local rest = (tonumber(held) or 0) - counts[names[i]]
    if rest > 0 then
      left[#left + 1] = names[i]
      left[#left + 1] = rest
    else
      none[#none + 1] = names[i]
    end
  end
  if #left > 0 then call('HSET', stem .. 'holds', unpack(left)) end
  if #none > 0 then call('HDEL', stem .. 'holds', unpack(none)) end
  if call('EXISTS', stem .. 'full') == 0 then return end
  -- one that was at its limit may go on
  for _, group in ipairs(names) do
    if call('SREM', stem .. 'full', group) == 1 then reseat(group) end
  end
end

-- What the end of leases lets go on: groups of these runs, and the queue itself where only so many may run.
local function free(runs)
  if grouped() then
    local counts, names = {}, {}
    for _, run in ipairs(runs) do
      local cut = string.find(run, '\0', 1, true)
      if cut then
        local group = string.sub(run, cut + 1)
        if not counts[group] then names[#names + 1] = group end
        counts[group] = (counts[group] or 0) + 1
      end
    end
    if #names > 0 then free_groups(names, counts) end
    wake()
  elseif get_pace() then
    wake()
  end
end

-- Adds to the count of bytes that wait; foreign pushes are not counted, so it may not fall below zero.
local function weigh(bytes)
  if bytes == 0 then return end
  if call('HINCRBY', stem .. 'meta', 'bytes', bytes) < 0 then call('HSET', stem .. 'meta', 'bytes', 0) end
end

-- Puts a job into the line of its priority and writes its run.
local function line_up(id, attempt, crashes, priority, tail, front)
  local at = 0
  local group = grouped() and group_of(call('HGET', stem .. 'jobs', id))
  if group then
    local seq = call('HINCRBY', stem .. 'meta', front and 'front' or 'back', front and -1 or 1)
    call('ZADD', stem .. 'group:' .. group, rank(priority, seq), id)
    call('HINCRBY', stem .. 'meta', 'grouped', 1)
    if call('ZADD', stem .. 'lines', 'NX', 0, group) == 1 then seat(group) end
    if attempt == 0 and crashes == 0 and priority == 0 and tail == '' then
      call('HDEL', stem .. 'runs', id)
      return
    end
  elseif priority == 0 then
    call(front and 'RPUSH' or 'LPUSH', stem .. 'ready', id)
    if attempt == 0 and crashes == 0 and tail == '' then
      call('HDEL', stem .. 'runs', id)
      return
    end
  else
    at = 50000000000000 + call('HINCRBY', stem .. 'meta', front and 'front' or 'back', front and -1 or 1)
    call('ZADD', stem .. 'prio', -priority, at .. id)
  end
  call('HSET', stem .. 'runs', id, 'ready ' .. attempt .. ' ' .. crashes .. ' ' .. priority .. ' ' .. at .. ' ' .. tail)
end

-- Takes a job that has not ended out of wherever it waits or runs; returns its counts, and its token when it ran.
local function withdraw(id, state, run)
  if state == 'active' then
    local token, attempt, crashes, priority = string.match(run, '^((%d+)%S*) (%d+) (%-?%d+)')
    call('HDEL', stem .. 'active', id)
    call('ZREM', stem .. 'reserved', id)
    free({ run })
    return attempt .. ' ' .. crashes .. ' ' .. priority, token
  end
  local _, attempt, crashes, priority, at = parse(run)
  local group = grouped() and group_of(call('HGET', stem .. 'jobs', id))
  if state == 'blocked' then
    call('HDEL', stem .. 'blocked', id)
  elseif state == 'scheduled' then
    call('ZREM', stem .. 'scheduled', id)
  elseif group then
    call('ZREM', stem .. 'group:' .. group, id)
    call('HINCRBY', stem .. 'meta', 'grouped', -1)
  elseif priority == 0 then
    call('HINCRBY', stem .. 'ghosts', id, 1)
    call('HINCRBY', stem .. 'meta', 'stale', 1)
  else
    call('ZREM', stem .. 'prio', at .. id)
  end
  call('HDEL', stem .. 'runs', id)
  weigh(-call('HSTRLEN', stem .. 'jobs', id))
  return attempt .. ' ' .. crashes .. ' ' .. priority
end

local function promote(limit)
  local due = call('ZRANGEBYSCORE', stem .. 'scheduled', '-inf', now, 'LIMIT', 0, limit)
  if #due == 0 then return 0 end
  call('ZREM', stem .. 'scheduled', unpack(due))
  local runs = call('HMGET', stem .. 'runs', unpack(due))
  for i, id in ipairs(due) do
    local _, attempt, crashes, priority, _, tail = parse(runs[i])
    line_up(id, attempt, crashes, priority, tail, false)
  end
  return #due
end

local function forget(ids)
  if #ids == 0 then return end
  call('HDEL', stem .. 'jobs', unpack(ids))
  if call('EXISTS', stem .. 'ended') == 1 then call('HDEL', stem .. 'ended', unpack(ids)) end
  if call('EXISTS', stem .. 'notes') == 1 then
    for _, id in ipairs(ids) do call('HDEL', stem .. 'notes', 'p' .. id, 'l' .. id) end
  end
end

local function unlock(key, id)
  local holder = call('HGET', stem .. 'unique', key)
  if holder and string.match(holder, '^%d+ (.*)$') == id then
    call('HDEL', stem .. 'unique', key)
    call('ZREM', stem .. 'unique_ttl', key)
  end
end

local function announce(ids)
  if call('EXISTS', stem .. 'awaited') == 0 then return end
  for _, id in ipairs(ids) do
    if call('HDEL', stem .. 'awaited', id) == 1 then call('PUBLISH', stem .. 'signals', 'f' .. id) end
  end
end

-- The claim sequence in a token.
local function claim_of(token)
  local first, index = string.match(token, '%.(%d+)%-(%d+)%.')
  return first * 1000 + index
end


-- Ends jobs in one final state: keeps their records for a while or drops them, and tells waiters.
-- Parallel lists: ids, runs, keeps (milliseconds); count is how many records of this state may stay.
local function close(state, ids, runs, keeps, count)
  if #ids == 0 then return end
  local scores, fields, drop, k = {}, {}, {}, 0
  for i = 1, #ids do
    if keeps[i] > 0 and count > 0 then
      scores[k + 1], scores[k + 2] = now + keeps[i], ids[i]
      fields[k + 1], fields[k + 2] = ids[i], runs[i]
      k = k + 2
    else
      drop[#drop + 1] = ids[i]
    end
  end
  if k > 0 then
    call('HSET', stem .. 'ended', unpack(fields))
    local over = call('ZCARD', stem .. state) + call('ZADD', stem .. state, unpack(scores)) - count
    if over > 0 then
      local popped = call('ZPOPMIN', stem .. state, math.min(over, 1000))
      for i = 1, #popped, 2 do drop[#drop + 1] = popped[i] end
    end
  end
  forget(drop)
  announce(ids)
end

-- One upstream of a blocked job has ended. An edge is a field that can be deleted once, so a second telling is harmless.
-- Returns the job's id when it has to be skipped.
local function deliver(down, up, state)
  local edge = down .. '\0' .. up
  local policy = call('HGET', stem .. 'edges', edge)
  if not policy then return nil end
  call('HDEL', stem .. 'edges', edge)
  local was, _, _, priority, at, tail = parse(call('HGET', stem .. 'runs', down))
  if was ~= 'blocked' then return nil end
  if state ~= 'done' and policy == 's' then
    call('HDEL', stem .. 'blocked', down)
    call('HDEL', stem .. 'runs', down)
    weigh(-call('HSTRLEN', stem .. 'jobs', down))
    local keep, count, key = string.match(tail, '^(%d+) (%d+) (.*)$')
    if key ~= '' then unlock(key, down) end
    local why = 'an upstream job ended ' .. state .. ': ' .. string.match(up, '([^%z]*)$')
    event('cancelled', down, why)
    close('cancelled', { down }, { 'cancelled 0 0 ' .. priority .. ' ' .. now .. ' ' .. why }, { tonumber(keep) }, tonumber(count))
    return down
  end
  if call('HINCRBY', stem .. 'blocked', down, -1) > 0 then return nil end
  call('HDEL', stem .. 'blocked', down)
  if at > now then
    call('ZADD', stem .. 'scheduled', at, down)
    call('HSET', stem .. 'runs', down, 'scheduled 0 0 ' .. priority .. ' ' .. at .. ' ')
  else
    line_up(down, 0, 0, priority, '', false)
  end
  wake()
  return nil
end

-- Tells the dependents of ended jobs, here and now where they are few and in this queue; the outbox takes the rest.
-- Pairs: id, state, id, state … Returns 1 when the outbox has something.
local function tell(pairs_)
  if call('EXISTS', stem .. 'downs') == 0 then return 0 end
  local budget, head = 1000, 1
  while head <= #pairs_ do
    local id, state = pairs_[head], pairs_[head + 1]
    head = head + 2
    if call('HEXISTS', stem .. 'downs', id) == 1 then
      local deps = stem .. 'deps:' .. id
      local size = call('SCARD', deps)
      if size <= budget then
        budget = budget - size
        local members = call('SMEMBERS', deps)
        table.sort(members)
        for _, member in ipairs(members) do
          if string.sub(member, 1, 1) == '\0' then
            local skipped = deliver(string.sub(member, 2), '\0' .. id, state)
            if skipped then
              pairs_[#pairs_ + 1] = skipped
              pairs_[#pairs_ + 1] = 'cancelled'
            end
            call('SREM', deps, member)
          end
        end
      end
      if call('SCARD', deps) == 0 then
        call('HDEL', stem .. 'downs', id)
      else
        call('RPUSH', stem .. 'outbox', state .. '\0' .. id)
        -- its record may be gone before the other queues hear of it
        call('HSET', stem .. 'fates', id, state)
        call('ZADD', stem .. 'fates_ttl', now + 600000, id)
      end
    end
  end
  return call('EXISTS', stem .. 'outbox')
end
