-- record_events: records events from now on, for this many ms. ARGV: now, ms. Reply: position of the last event.
-- If recording had lapsed, a 'gap' event shows that events may be missing.
-- include: queue
local till = tonumber(call('HGET', stem .. 'meta', 'watched') or 0)
local kept = call('XLEN', stem .. 'events')
if kept == 0 then call('HDEL', stem .. 'meta', 'recorded') end
if till <= now or kept == 0 then
  call('XADD', stem .. 'events', '*', 'gap', '', now, '')
  call('HINCRBY', stem .. 'meta', 'recorded', 1)
end
call('HSET', stem .. 'meta', 'watched', math.max(till, now + ARGV[2]))
-- events that nobody reads any more expire
call('PEXPIRE', stem .. 'events', ARGV[2] + 3600000)
return call('XREVRANGE', stem .. 'events', '+', '-', 'COUNT', 1)[1][1]
