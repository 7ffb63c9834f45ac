-- include: queue claim_entries

-- Takes jobs whose negated priority is in a range, highest priority first.
local function take_priorities(want, from, to)
  if want <= 0 then return end
  local members = call('ZRANGEBYSCORE', stem .. 'prio', from, to, 'LIMIT', 0, want)
  if #members == 0 then return end
  call('ZREM', stem .. 'prio', unpack(members))
  for _, member in ipairs(members) do ids[#ids + 1] = string.sub(member, 15) end
end
