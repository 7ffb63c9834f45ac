-- include: drop_records

local function announce_ends(ids)
  if call('EXISTS', stem .. 'awaited') == 0 then return end
  for _, id in ipairs(ids) do
    if call('HDEL', stem .. 'awaited', id) == 1 then call('PUBLISH', stem .. 'signals', 'f' .. id) end
  end
end

-- Ends jobs in one final state: keeps their records for a while or removes them, and notifies watchers.
-- Parallel lists: ids, runs, keeps (milliseconds); count is how many records of this state are kept.
local function close_jobs(state, ids, runs, keeps, count)
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
  drop_records(drop)
  announce_ends(ids)
end
