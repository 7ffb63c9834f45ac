-- obliterate: removes everything except the sessions, the claim sequence, and the positions of sources. ARGV: now.
-- Reply: 1, or 0 if groups or dependents are left and another call is needed. A call removes up to 500 of each.
-- include: allow_oom groups pad unused
allow_oom()
local groups, ups = call('ZRANGE', stem .. 'lines', 0, 499), call('HSCAN', stem .. 'downs', 0, 'COUNT', 500)[2]
for _, group in ipairs(groups) do
  call('UNLINK', stem .. 'group:' .. group, stem .. 'rate:' .. group)
  call('ZREM', stem .. 'lines', group)
end
for i = 1, #ups, 2 do
  call('UNLINK', stem .. 'deps:' .. ups[i])
  call('HDEL', stem .. 'downs', ups[i])
end
if call('EXISTS', stem .. 'lines', stem .. 'downs') > 0 then return 0 end
call('UNLINK', list)
for _, name in ipairs(COMPANIONS) do
  -- An empty stream goes on counting: a new one could begin in the same millisecond, with positions that readers have seen.
  if name == 'events' then call('XTRIM', stem .. name, 'MAXLEN', 0) else call('UNLINK', stem .. name) end
end
call('HDEL', stem .. 'meta', 'bytes', 'stale', 'paused', 'front', 'back', 'grouped', 'sheaved', 'dropped', 'broken', 'recorded')
-- Only a queue with workers needs to be ready for claims.
if call('EXISTS', stem .. 'workers') == 1 then
  pad('active')
  if grouped() then pad('holds') end
end
call('PUBLISH', stem .. 'signals', 'r')
return 1
