-- outbox: works on the oldest ended job whose dependents are still to be told.
-- ARGV: now, then members already told elsewhere: id, member… Reply: nil when empty; else id, state, members in other queues…
allow_oom()
if #ARGV > 2 then call('SREM', stem .. 'deps:' .. ARGV[2], unpack(ARGV, 3)) end
local item = call('LINDEX', stem .. 'outbox', 0)
if not item then return nil end
local state, id = string.match(item, '^(%a+)%z(.*)$')
local deps = stem .. 'deps:' .. id
local reply, told = { id, state }, {}
for _, member in ipairs(call('SRANDMEMBER', deps, 500)) do
  if string.sub(member, 1, 1) == '\0' then
    local skipped = deliver(string.sub(member, 2), '\0' .. id, state)
    if skipped then
      told[#told + 1] = skipped
      told[#told + 1] = 'cancelled'
    end
    call('SREM', deps, member)
  else
    reply[#reply + 1] = member
  end
end
if call('EXISTS', deps) == 0 then
  call('LPOP', stem .. 'outbox')
  call('HDEL', stem .. 'downs', id)
end
if #told > 0 then tell(told) end
return reply
