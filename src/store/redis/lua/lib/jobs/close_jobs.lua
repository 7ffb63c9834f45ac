-- include: kept_records ended_ids

-- Ends jobs in one final state: keeps their records for a while or removes them, and notifies watchers.
-- Parallel lists: ids, runs, keeps (milliseconds), windows (milliseconds for which the id stays taken, 0 = not at all);
-- count is how many records of this state are kept.
local function close_jobs(state, ids, runs, keeps, count, windows)
  if #ids == 0 then return end
  local awaited = take_awaited(ids)
  release_needs(ids)
  local any_kept = call('EXISTS', stem .. 'kept') == 1
  local scores, fields, drop = {}, {}, {}
  for i, id in ipairs(ids) do
    if windows[i] > 0 then remember_ids({ id }, windows[i]) end
    local listed = keeps[i] > 0 and count > 0
    if listed then
      scores[#scores + 1] = now + keeps[i]
      scores[#scores + 1] = id
    else
      drop[#drop + 1] = id
    end
    if listed or any_kept then
      fields[#fields + 1] = id
      fields[#fields + 1] = runs[i]
    end
  end
  if #fields > 0 then call('HSET', stem .. 'ended', unpack(fields)) end
  if #scores > 0 then
    local over = math.min(call('ZCARD', stem .. state) + call('ZADD', stem .. state, unpack(scores)) - count, 1000)
    if over > 0 then
      local last = state == 'done' and now + math.max(unpack(keeps)) - YOUNG or '+inf'
      local oldest = call('ZRANGEBYSCORE', stem .. state, '-inf', last, 'LIMIT', 0, over)
      if #oldest > 0 then call('ZREM', stem .. state, unpack(oldest)) end
      for _, id in ipairs(oldest) do drop[#drop + 1] = id end
      if state == 'dead' and #oldest > 0 then call('HINCRBY', stem .. 'meta', 'dropped', #oldest) end
    end
  end
  if #drop > 0 then drop_ended(drop) end
  announce_ends(awaited)
end
