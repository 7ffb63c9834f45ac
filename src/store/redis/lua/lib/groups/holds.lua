-- include: queue

-- Counts the ended leases of these runs off their groups, and returns the names of the groups.
local function release_holds(runs)
  local counts, names = {}, {}
  for _, run in ipairs(runs) do
    local cut = string.find(run, '\0', 1, true)
    if cut then
      local group = string.sub(run, cut + 1)
      if not counts[group] then names[#names + 1] = group end
      counts[group] = (counts[group] or 0) + 1
    end
  end
  if #names == 0 then return names end
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
  return names
end
