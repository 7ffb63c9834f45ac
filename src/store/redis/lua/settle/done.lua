-- done: settle, for jobs that are done with default retention, or none (keep-count 0), and no unique key to free.
-- ARGV: now, keep-count, ms for which the ids stay taken (0 = not at all), packed list of groups of jobs with the same outcome: 'attempt crashes priority', result, number of
-- jobs, and per job: id, token.
-- Reply: outbox flag, then the indexes of jobs whose token no longer matched.
-- include: allow_oom attempts breaker close_jobs dependencies events release_groups tokens
allow_oom()
local argv = cmsgpack.unpack(ARGV[4])
local count, last = tonumber(ARGV[2]), #argv
local ids, n, p = {}, 0, 1
while p <= last do
  local size = tonumber(argv[p + 2])
  for i = p + 3, p + 1 + 2 * size, 2 do
    n = n + 1
    ids[n] = argv[i]
  end
  p = p + 3 + 2 * size
end

local found = call('HMGET', stem .. 'active', unpack(ids))
local reply, live, fields, k, index = { 0 }, ids, {}, 0, 0
local ended, counted = found, get_breaker()
p = 1
while p <= last do
  local head, result, size = 'done ' .. argv[p] .. ' ' .. now .. ' ', argv[p + 1], tonumber(argv[p + 2])
  for i = p + 3, p + 1 + 2 * size, 2 do
    index = index + 1
    local held = found[index]
    if has_token(held, argv[i + 1]) then
      if counted then count_success(argv[i + 1]) end
      fields[k + 1], fields[k + 2] = argv[i], head .. started(held) .. result
      k = k + 2
    else
      reply[#reply + 1] = index
    end
  end
  p = p + 3 + 2 * size
end
if k == 0 then return reply end
if k < 2 * n then
  live, ended = {}, {}
  for i = 1, k, 2 do live[#live + 1] = fields[i] end
  local stale = {}
  for i = 2, #reply do stale[reply[i]] = true end
  for i = 1, n do
    if not stale[i] then ended[#ended + 1] = found[i] end
  end
end

call('HDEL', stem .. 'active', unpack(live))
release_groups(ended)
if watched() then
  for _, id in ipairs(live) do event('done', id) end
end
tell_breaker()
if call('EXISTS', stem .. 'reserved') == 1 then call('ZREM', stem .. 'reserved', unpack(live)) end
local awaited = take_awaited(live)
release_needs(live)
if ARGV[3] ~= '0' then remember_ids(live, tonumber(ARGV[3])) end
if count == 0 then
  if call('EXISTS', stem .. 'kept') == 1 then call('HSET', stem .. 'ended', unpack(fields)) end
  drop_ended(live)
else
  call('HSET', stem .. 'ended', unpack(fields))
  if call('LPUSH', stem .. 'recent', unpack(live)) > count then drop_recent(count) end
end
announce_ends(awaited)
if call('EXISTS', stem .. 'downs') == 1 then
  local ended = {}
  for i, id in ipairs(live) do ended[2 * i - 1], ended[2 * i] = id, 'done' end
  reply[1] = notify_dependents(ended)
end
return reply
