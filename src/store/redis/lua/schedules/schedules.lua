-- schedules: the schedules of this queue. ARGV: now.
-- Reply: per schedule: name, since, definition, next tick or '', last tick or ''.
-- include: queue
local reply, flat = {}, call('HGETALL', stem .. 'schedules')
for i = 1, #flat, 2 do
  local since, definition = string.match(flat[i + 1], '^(%d+) (.*)$')
  for _, value in ipairs({ flat[i], since, definition, call('ZSCORE', stem .. 'ticks', flat[i]) or '',
    call('HGET', stem .. 'lasts', flat[i]) or '' }) do
    reply[#reply + 1] = value
  end
end
return reply
