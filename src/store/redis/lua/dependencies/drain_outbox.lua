-- drain_outbox: removes delivered messages, and returns the oldest messages that must still be delivered to other queues.
-- ARGV: now, then the delivered messages, in the form of the reply.
-- Reply: 1 while the outbox is not empty, else 0; then per message: '<state>\0<id>' of the ended job, number of dependents in
-- other queues, those dependents… Dependents in this queue are notified here. A message stays until its last dependent has
-- been notified.
-- include: allow_oom dependencies
allow_oom()
local outbox = stem .. 'outbox'

local function finish_if_empty(message, id)
  if call('EXISTS', stem .. 'deps:' .. id) == 1 then return end
  call('LREM', outbox, 1, message)
  call('HDEL', stem .. 'downs', id)
end

local p = 2
while p <= #ARGV do
  local id, count = string.match(ARGV[p], '^%a+%z(.*)$'), tonumber(ARGV[p + 1])
  if count > 0 then call('SREM', stem .. 'deps:' .. id, unpack(ARGV, p + 2, p + 1 + count)) end
  finish_if_empty(ARGV[p], id)
  p = p + 2 + count
end

local reply, cancelled, budget = { 0 }, {}, 500
for _, message in ipairs(call('LRANGE', outbox, 0, 499)) do
  local state, id = string.match(message, '^(%a+)%z(.*)$')
  local members = call('SRANDMEMBER', stem .. 'deps:' .. id, budget)
  local foreign = notify_local(id, state, members, cancelled)
  finish_if_empty(message, id)
  budget = budget - math.max(#members, 1)
  if call('EXISTS', stem .. 'deps:' .. id) == 1 then
    reply[#reply + 1] = message
    reply[#reply + 1] = #foreign .. ''
    for _, member in ipairs(foreign) do reply[#reply + 1] = member end
  end
  if budget <= 0 then break end
end
if #cancelled > 0 then notify_dependents(cancelled) end
reply[1] = call('EXISTS', outbox)
return reply
