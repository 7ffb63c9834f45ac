-- claim: up to n entries for a worker whose session is alive.
-- ARGV: now, worker, n, nonce, lease in ms.
-- Reply: status (ok, paused, lost), more (0 or 1), time of the next scheduled job or '', first claim sequence, and
-- packed lists: ids ('' for a raw task), bodies (record or task), runs before the claim ('' when fresh; empty when all are).
-- The token of the k-th entry is '<attempt>.<first>-<k, three digits from 000>.<nonce>'. A claim is as good as a beat.
local worker, n, nonce = ARGV[2], tonumber(ARGV[3]), ARGV[4]
-- A key of the wrong type must fail here, before anything is written.
call('LLEN', list)
allow_oom()
local deadline = call('ZSCORE', stem .. 'workers', worker)
if not deadline or tonumber(deadline) < 0 then return { 'lost', 0, '', 0 } end
call('ZADD', stem .. 'workers', 'XX', 'GT', now + ARGV[5], worker)
if call('HEXISTS', stem .. 'meta', 'paused') == 1 then return { 'paused', 0, '', 0 } end
promote(1000)

-- What the pace of the queue leaves, and when it leaves more.
local asked, opens = n, nil
local rule = get_pace()
if rule and rule.most > 0 then
  n = math.min(n, rule.most - (call('HLEN', stem .. 'active') - 1 + count_leased()))
end
local rate_start, rate_count
if rule and rule.count > 0 then
  rate_start, rate_count = window(call('HGET', stem .. 'rates', ''), rule.per)
  if rule.count - rate_count <= n then opens = rate_start + rule.per end
  n = math.min(n, rule.count - rate_count)
end
n = math.max(n, 0)
local bound, most = n < asked, n

local ids, groups = {}, {}
local ghosts = call('EXISTS', stem .. 'ghosts') == 1

local function take_prio(from, to)
  local want = n - #ids
  if want <= 0 then return end
  local members = call('ZRANGEBYSCORE', stem .. 'prio', from, to, 'LIMIT', 0, want)
  if #members == 0 then return end
  call('ZREM', stem .. 'prio', unpack(members))
  for _, member in ipairs(members) do ids[#ids + 1] = string.sub(member, 15) end
end

-- Ids of jobs cancelled while they waited are still in the list: each such ghost is skipped once.
local function skip_ghosts(popped)
  local kept = 0
  for _, id in ipairs(popped) do
    if call('HEXISTS', stem .. 'ghosts', id) == 1 then
      if call('HINCRBY', stem .. 'ghosts', id, -1) <= 0 then call('HDEL', stem .. 'ghosts', id) end
      call('HINCRBY', stem .. 'meta', 'stale', -1)
    else
      kept = kept + 1
      ids[#ids + 1] = id
    end
  end
  return kept
end

local function take_ready(want)
  for _ = 1, 100 do
    local popped = want > 0 and call('RPOP', stem .. 'ready', want)
    if not popped then return end
    if not ghosts and #ids == 0 then
      ids = popped
      return
    end
    if ghosts then
      want = want - skip_ghosts(popped)
    else
      for _, id in ipairs(popped) do ids[#ids + 1] = id end
      return
    end
  end
end

-- The next groups of the round, as many as are wanted: their names, what each may give as far as its limits go, how many jobs
-- of it run, and the window of its rate.
local function next_groups(want)
  local names, caps, holds, starts, counts = {}, {}, {}, {}, {}
  local m, budget = 0, want + 1000
  local most, rate = rule and rule.group_most or 0, rule and rule.group_count or 0
  while m < want and budget > 0 do
    local fetched = call('RPOP', stem .. 'turns', math.min(want - m, budget))
    if not fetched then break end
    budget = budget - #fetched
    local held, rates = call('HMGET', stem .. 'holds', unpack(fetched)), nil
    if rate > 0 then
      local keys = {}
      for i, group in ipairs(fetched) do keys[i] = stem .. 'rate:' .. group end
      rates = call('MGET', unpack(keys))
    end
    for i, group in ipairs(fetched) do
      local running = tonumber(held[i]) or 0
      local cap, start, count = most > 0 and most - running or math.huge, nil, nil
      if rates then
        start, count = window(rates[i], rule.group_per)
        cap = math.min(cap, rate - count)
      end
      if cap > 0 then
        m = m + 1
        names[m], caps[m], holds[m], starts[m], counts[m] = group, cap, running, start, count
      else
        reseat(group)
      end
    end
  end
  return m, names, caps, holds, starts, counts
end

-- Groups take turns, one job each; a group that may not go on now leaves the round. It is counted first and taken then, so
-- that a group costs the same for one job or many. How long a line is shows when it is taken from: returns how many are missing
-- since a line was too short.
local function take_groups(want)
  local m, names, caps, holds, starts, counts = next_groups(want)
  if m == 0 then return 0 end
  local given, left, last, rounds = {}, want - m, m, 1
  for i = 1, m do given[i] = 1 end
  while left > 0 do
    local before = left
    for i = 1, m do
      if left > 0 and given[i] < caps[i] then
        given[i], left, last = given[i] + 1, left - 1, i
      end
    end
    if left == before then break end
    rounds = rounds + 1
  end

  local lines, marks, popped, fields, k = {}, {}, {}, {}, 0
  local ttl = string.format('%d', rule and math.max(3600000, 2 * rule.group_per) or 0)
  for i = 1, m do
    local group, line = names[i], stem .. 'group:' .. names[i]
    local got = call('ZPOPMIN', line, given[i])
    lines[i], marks[i], popped[i] = line, '\0' .. group, got
    if #got > 0 then
      fields[k + 1], fields[k + 2] = group, holds[i] + #got / 2
      k = k + 2
      if counts[i] then
        call('SET', stem .. 'rate:' .. group, string.format('%d %d', starts[i], counts[i] + #got / 2), 'PX', ttl)
      end
    end
  end
  if k > 0 then call('HSET', stem .. 'holds', unpack(fields)) end

  local total, missed = #ids, 0
  for round = 1, rounds do
    for i = 1, m do
      if given[i] >= round then
        local id = popped[i][2 * round - 1]
        if id then
          total = total + 1
          ids[total], groups[total] = id, marks[i]
        else
          missed = missed + 1
        end
      end
    end
  end

  -- Whoever had the last turn stands behind all others.
  local some_ended, behind = call('EXISTS', unpack(lines)) < m, {}
  for step = 0, m - 1 do
    local i = (last + step) % m + 1
    if some_ended and call('EXISTS', lines[i]) == 0 then
      call('ZREM', stem .. 'lines', names[i])
    elseif given[i] >= caps[i] then
      reseat(names[i])
    else
      behind[#behind + 1] = names[i]
    end
  end
  if #behind > 0 then call('LPUSH', stem .. 'turns', unpack(behind)) end
  return missed
end

-- Groups whose time has come, or whose limit has changed, take turns again.
local function reopen()
  local due = call('ZRANGEBYSCORE', stem .. 'rested', '-inf', now, 'LIMIT', 0, 1000)
  if #due > 0 then call('ZREM', stem .. 'rested', unpack(due)) end
  for _, group in ipairs(due) do reseat(group) end
  for _, group in ipairs(call('SPOP', stem .. 'reopen', 1000)) do reseat(group) end
end

local prioritised = call('ZCARD', stem .. 'prio') > 0
if prioritised then take_prio('-inf', '(0') end
local tasks = {}
local want = n - #ids
local raw, refs = call('LLEN', list), call('LLEN', stem .. 'ready')
if ghosts then refs = refs - (tonumber(call('HGET', stem .. 'meta', 'stale')) or 0) end
-- Kinds share what is wanted; of an odd number each gets the larger half in turn. With three kinds there are two such turns.
local function half(whole, turns)
  if whole % 2 == 0 then return whole / 2 end
  return (whole - 1) / 2 + math.floor((tonumber(call('HGET', stem .. 'meta', 'seq')) or 0) / turns) % 2
end
local turns = 1
if grouped() then
  if (tonumber(call('HGET', stem .. 'meta', 'grouped')) or 0) > 0 then turns = 2 end
  reopen()
  local had = #ids
  local wanted = want > 0 and math.max(half(want, 1), want - raw - refs) or 0
  for _ = 1, 10 do
    if wanted <= 0 then break end
    wanted = take_groups(wanted)
  end
  if #ids > had then call('HINCRBY', stem .. 'meta', 'grouped', had - #ids) end
  want = n - #ids
end
local before = #ids
if want > 0 then
  if raw > 0 then
    local share = math.min(raw, math.max(half(want, turns), want - refs))
    if share > 0 then tasks = call('RPOP', list, share) end
    refs = math.min(refs, want - share)
  end
  take_ready(math.min(refs, want))
end
local middle = #ids
if prioritised and #ids + #tasks < n then
  n = n - #tasks
  take_prio('(0', '+inf')
end

local records = #ids > 0 and call('HMGET', stem .. 'jobs', unpack(ids)) or {}
local tried = #ids > 0 and call('EXISTS', stem .. 'runs') == 1
local runs = tried and call('HMGET', stem .. 'runs', unpack(ids)) or {}
local total = #ids + #tasks
-- Groups whose line was cancelled away are still in the round: those that stand first leave it now.
for _ = 1, grouped() and 1000 or 0 do
  local group = call('LINDEX', stem .. 'turns', -1)
  if not group or call('EXISTS', stem .. 'group:' .. group) == 1 then break end
  call('RPOP', stem .. 'turns')
  call('ZREM', stem .. 'lines', group)
end
local more = call('EXISTS', list, stem .. 'ready', stem .. 'prio', stem .. 'turns') > 0 and 1 or 0
if ghosts and more == 1 then
  local stale = tonumber(call('HGET', stem .. 'meta', 'stale')) or 0
  local left = call('LLEN', stem .. 'ready')
  -- nothing but ghosts: they are laid to rest now
  if left == stale then skip_ghosts(call('RPOP', stem .. 'ready', 1000) or {}) end
  if left == stale and call('EXISTS', list, stem .. 'prio', stem .. 'turns') == 0 then more = 0 end
end
local next_at = call('ZRANGE', stem .. 'scheduled', 0, 0, 'WITHSCORES')[2] or ''
local function sooner(at) if at and (next_at == '' or tonumber(at) < tonumber(next_at)) then next_at = tostring(at) end end
if rate_start and total > 0 then call('HSET', stem .. 'rates', '', rate_start .. ' ' .. (rate_count + total)) end
-- At the pace's limit there is no more for now, whatever waits.
if more == 1 and total == most and (bound or opens) then
  more = 0
  sooner(opens)
end
if grouped() then sooner(call('ZRANGE', stem .. 'rested', 0, 0, 'WITHSCORES')[2]) end
if more == 0 then call('HSET', stem .. 'meta', 'hungry', 1) end
if total == 0 then return { 'ok', more, next_at, 0 } end

local first = call('HINCRBY', stem .. 'meta', 'seq', total) - total + 1
local index, bytes, k = 0, 0, 0
local fields, leased, moved = {}, {}, {}
local out_ids, out_bodies, out_runs = {}, {}, {}
local head, tail = '.' .. first .. '-', '.' .. nonce
local fresh_head, fresh_tail = '1' .. head, tail .. ' 0 0 ' .. now .. ' ' .. worker

-- Three digits, from strings at hand: rendering a number costs more than all else that is done for a job here.
local DIGIT = { [0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' }
local function digits(i)
  local ones, tens = i % 10, i % 100
  return DIGIT[(i - tens) / 100] .. DIGIT[(tens - ones) / 10] .. DIGIT[ones]
end

-- The record says what a claim has to know: see codec.ts. Only looked at once the queue has had such a job.
local minding = call('HEXISTS', stem .. 'meta', 'minds') == 1
local function mind(id, record)
  local flags, offset = string.byte(record) - 48, 11
  if flags % 2 == 1 then
    local ms = string.match(record, '^(%d+);', offset)
    offset = offset + #ms + 1
    call('ZADD', stem .. 'reserved', now + ms, id)
  end
  if flags % 4 >= 2 then
    local size = string.match(record, '^(%d+);', offset)
    offset = offset + #size + 1
    unlock(string.sub(record, offset, offset + size - 1), id)
  end
end

local function lease_job(id, record, run, group)
  local place = digits(index)
  index = index + 1
  fields[k + 1] = id
  if run then
    local _, attempt, crashes, priority = parse(run)
    fields[k + 2] = (attempt + 1) .. head .. place .. tail .. ' ' .. crashes .. ' ' .. priority .. ' ' .. now .. ' ' .. worker .. group
    moved[#moved + 1] = id
  else
    fields[k + 2] = fresh_head .. place .. fresh_tail .. group
  end
  k = k + 2
  bytes = bytes + #record
  if minding then mind(id, record) end
end

-- The same for a batch of fresh jobs, the common case: ten tokens differ in their last digit only.
local function lease_fresh()
  local prefix
  for i = 1, #ids do
    local ones = (i - 1) % 10
    if ones == 0 then prefix = fresh_head .. string.sub(digits(i - 1), 1, 2) end
    local record = records[i]
    fields[k + 1], fields[k + 2] = ids[i], prefix .. DIGIT[ones] .. fresh_tail .. (groups[i] or '')
    k = k + 2
    bytes = bytes + #record
    if minding then mind(ids[i], record) end
  end
end

if #tasks == 0 and not tried then
  out_ids, out_bodies = ids, records
  lease_fresh()
else
  local i, t, o = 1, 1, 0
  while i <= #ids or t <= #tasks do
    o = o + 1
    -- raw tasks stand in the middle, turn by turn with jobs of default priority
    if i <= #ids and (i <= before or t > #tasks or (i <= middle and i - before <= t - 1)) then
      out_ids[o], out_bodies[o], out_runs[o] = ids[i], records[i], runs[i] or ''
      lease_job(ids[i], records[i], runs[i], groups[i] or '')
      i = i + 1
    else
      leased[#leased + 1] = fresh_head .. digits(index) .. tail
      leased[#leased + 1] = worker .. '\0' .. tasks[t]
      index = index + 1
      out_ids[o], out_bodies[o], out_runs[o] = '', tasks[t], ''
      bytes = bytes + #tasks[t]
      t = t + 1
    end
  end
end
if k > 0 then call('HSET', stem .. 'active', unpack(fields)) end
if #leased > 0 then
  call('HSET', stem .. 'leased', unpack(leased))
  seal(tasks, function(i) return leased[2 * i - 1] end)
end
if watched() then
  for i, id in ipairs(ids) do
    local _, attempt = parse(runs[i])
    event('started', id, attempt + 1)
  end
end
if #moved > 0 then call('HDEL', stem .. 'runs', unpack(moved)) end
weigh(-bytes)
local pack = cmsgpack.pack
return { 'ok', more, next_at, first, pack(out_ids), pack(out_bodies), pack(out_runs) }
