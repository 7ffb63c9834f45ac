-- include: groups wake

-- Applies the end of leases to their groups: group names, and the number of ended leases of each.
local function release_leases(names, counts)
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
  -- a group that was at its limit may start more jobs
  for _, group in ipairs(names) do
    if call('SREM', stem .. 'full', group) == 1 then requeue_group(group) end
  end
end

-- Lets work continue after leases ended: the groups of these runs, and the queue itself if its concurrency is limited.
local function release_groups(runs)
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
    if #names > 0 then release_leases(names, counts) end
    wake()
  elseif get_limits() then
    wake()
  end
end
