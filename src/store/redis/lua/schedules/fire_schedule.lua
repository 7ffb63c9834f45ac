-- fire_schedule: the first part of a script that continues as `add`. Applies only while the tick is the schedule's next.
-- ARGV: those of add, then: name, definition, tick, next tick or '', last tick or ''. Reply: 'stale', or that of add.
-- include: queue
do
  local last, next_, tick = table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)
  local definition, name = table.remove(ARGV), table.remove(ARGV)
  local known = string.match(call('HGET', stem .. 'schedules', name) or '', '^%d+ (.*)$')
  local due = call('ZSCORE', stem .. 'ticks', name)
  if known ~= definition or not due or tonumber(due) ~= tonumber(tick) then return { 'stale' } end
  -- a caller whose clock is ahead must wait until the tick is due
  if tonumber(tick) > now + 1000 then return { 'stale' } end
  if next_ == '' then call('ZREM', stem .. 'ticks', name) else call('ZADD', stem .. 'ticks', next_, name) end
  if last ~= '' then call('HSET', stem .. 'lasts', name, last) end
end
