-- put_schedule: stores a schedule of this queue; an identical one stays unchanged.
-- ARGV: now, name, definition, since, first tick or '', 1 if the schedule found here is not the current one of that name.
-- Reply: since, definition, next tick or nil, last tick or nil.
-- include: queue
local name, definition = ARGV[2], ARGV[3]
local since, known = string.match(call('HGET', stem .. 'schedules', name) or '', '^(%d+) (.*)$')
if known ~= definition or ARGV[6] == '1' then
  since = ARGV[4]
  call('HSET', stem .. 'schedules', name, since .. ' ' .. definition)
  call('HDEL', stem .. 'lasts', name)
  if ARGV[5] == '' then call('ZREM', stem .. 'ticks', name) else call('ZADD', stem .. 'ticks', ARGV[5], name) end
end
return { since, definition, call('ZSCORE', stem .. 'ticks', name), call('HGET', stem .. 'lasts', name) }
