-- push: adds raw tasks at the back of the plain list.
-- ARGV: now, maximum number of waiting entries ('' = no limit), maximum waiting bytes, bytes of these tasks, origin of the signal, task…
-- Reply: 1 accepted, 0 full.
-- first: deliver_tasks
-- include: bytes wake
local n = #ARGV - 5
if ARGV[2] ~= '' then
  local waiting = call('LLEN', list) + call('LLEN', stem .. 'ready') + call('ZCARD', stem .. 'prio')
    + call('ZCARD', stem .. 'scheduled') + call('HLEN', stem .. 'blocked')
    - (tonumber(call('HGET', stem .. 'meta', 'stale')) or 0) + (tonumber(call('HGET', stem .. 'meta', 'grouped')) or 0)
  if waiting + n > tonumber(ARGV[2]) then return 0 end
end
if ARGV[3] ~= '' then
  if (tonumber(call('HGET', stem .. 'meta', 'bytes')) or 0) + ARGV[4] > tonumber(ARGV[3]) then return 0 end
end
call('LPUSH', list, unpack(ARGV, 6))
add_bytes(tonumber(ARGV[4]))
wake(false, ARGV[5])
return 1
