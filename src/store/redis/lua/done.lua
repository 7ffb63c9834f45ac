-- settle, for jobs that are simply done: one worker's, no key to free.
-- ARGV: now, keep-ms, keep-count, then per job: id, token, 'attempt crashes priority', result.
-- Reply: outbox flag, then the indexes of those whose token no longer matched.
allow_oom()
local keep, count = tonumber(ARGV[2]), tonumber(ARGV[3])
local n = (#ARGV - 3) / 4
local ids = {}
for i = 1, n do ids[i] = ARGV[4 * i] end
local found = call('HMGET', stem .. 'active', unpack(ids))
local reply, live, runs, keeps, k, seen = { 0 }, {}, {}, {}, 0, {}
local at = ' ' .. now .. ' '
for i = 1, n do
  local id, token = ids[i], ARGV[4 * i + 1]
  if found[i] and not seen[id] and string.find(found[i], token, 1, true) == 1 then
    seen[id] = true
    k = k + 1
    live[k], keeps[k] = id, keep
    runs[k] = 'done ' .. ARGV[4 * i + 2] .. at .. ARGV[4 * i + 3]
  else
    reply[#reply + 1] = i
  end
end
if k == 0 then return reply end
call('HDEL', stem .. 'active', unpack(live))
if call('EXISTS', stem .. 'reserved') == 1 then call('ZREM', stem .. 'reserved', unpack(live)) end
close('done', live, runs, keeps, count)
if call('EXISTS', stem .. 'downs') == 1 then
  local told = {}
  for i = 1, k do told[2 * i - 1], told[2 * i] = live[i], 'done' end
  reply[1] = tell(told)
end
return reply
