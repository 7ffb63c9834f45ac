-- include: queue claim_entries groups

-- The next groups in the rotation, up to the number wanted: their names, how many jobs the limits allow each to start, how
-- many of its jobs run, its rate window, and the job that it holds.
local function next_groups(want, rule)
  local names, caps, holds, starts, counts, firsts = {}, {}, {}, {}, {}, {}
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
    local waiting = rule and rule.ordered and call('HMGET', stem .. 'held', unpack(fetched)) or {}
    for i, group in ipairs(fetched) do
      local running = tonumber(held[i]) or 0
      local cap, start, count = most > 0 and most - running or math.huge, nil, nil
      local first, ready = held_job(group, waiting[i])
      if first and not ready then cap = 0 end
      if rates then
        start, count = rate_window(rates[i], rule.group_per)
        cap = math.min(cap, rate - count)
      end
      if cap > 0 then
        m = m + 1
        names[m], caps[m], holds[m], starts[m], counts[m], firsts[m] = group, cap, running, start, count, first
      else
        requeue_group(group)
      end
    end
  end
  return m, names, caps, holds, starts, counts, firsts
end

-- Takes the job that a group holds, in the form of ZPOPMIN.
local function take_held(group, id)
  call('ZREM', stem .. 'group:' .. group, id)
  call('HDEL', stem .. 'held', group)
  return { id, 0 }
end

-- Groups take turns, one job each; a group that may not start more now leaves the rotation. The shares are counted first
-- and the jobs taken afterwards, so that a group costs the same for one job or many. The length of a waiting list only shows
-- when jobs are taken from it: returns how many jobs are missing because lists were too short.
local function take_groups(want, rule)
  local m, names, caps, holds, starts, counts, firsts = next_groups(want, rule)
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
    local got = firsts[i] and take_held(group, firsts[i]) or call('ZPOPMIN', line, given[i])
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

  -- The group that had the last turn goes behind all others.
  local some_ended, behind = call('EXISTS', unpack(lines)) < m, {}
  for step = 0, m - 1 do
    local i = (last + step) % m + 1
    if some_ended and call('EXISTS', lines[i]) == 0 then
      call('ZREM', stem .. 'lines', names[i])
    elseif given[i] >= caps[i] then
      requeue_group(names[i])
    else
      behind[#behind + 1] = names[i]
    end
  end
  if #behind > 0 then call('LPUSH', stem .. 'turns', unpack(behind)) end
  return missed
end

-- Groups whose rate window has opened, or whose limit has changed, rejoin the rotation.
local function reopen_groups()
  local due = call('ZRANGEBYSCORE', stem .. 'rested', '-inf', now, 'LIMIT', 0, 1000)
  if #due > 0 then call('ZREM', stem .. 'rested', unpack(due)) end
  for _, group in ipairs(due) do requeue_group(group) end
  for _, group in ipairs(call('SPOP', stem .. 'reopen', 1000)) do requeue_group(group) end
end

-- Removes groups whose jobs were all cancelled from the head of the rotation.
local function drop_empty_groups()
  for _ = 1, 1000 do
    local group = call('LINDEX', stem .. 'turns', -1)
    if not group or call('EXISTS', stem .. 'group:' .. group) == 1 then return end
    call('RPOP', stem .. 'turns')
    call('ZREM', stem .. 'lines', group)
  end
end
