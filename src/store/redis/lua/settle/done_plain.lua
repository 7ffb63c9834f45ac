-- done_plain: the beginning of done. It finds the jobs whose token matches, and ends them by itself if nobody waits for them or depends on them, and the
-- queue has nothing special: most calls create none of the functions that the rest of done needs.
-- include: allow_oom drop_ended events holds tokens
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
local ended, tokens = found, {}
local breaker_set, limits_set, groups_set, watched_until = unpack(call('HMGET', stem .. 'meta', 'breaker', 'pace', 'groups', 'watched'))
p = 1
while p <= last do
  -- As `started` writes it, in one step for each job.
  local head, tail, size = 'done ' .. argv[p] .. ' ' .. now .. ' @', '\0\0' .. argv[p + 1], tonumber(argv[p + 2])
  for i = p + 3, p + 1 + 2 * size, 2 do
    index = index + 1
    local held = found[index]
    if has_token(held, argv[i + 1]) then
      if breaker_set then tokens[#tokens + 1] = argv[i + 1] end
      fields[k + 1], fields[k + 2] = argv[i], head .. held .. tail
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

-- As many are dropped as end, and more, so that a backlog goes away.
local function list_done()
  call('HSET', stem .. 'ended', unpack(fields))
  if call('LPUSH', stem .. 'recent', unpack(live)) > count then drop_recent(count, math.min(1000, 2 * #live)) end
end

watch_until = watched_until and tonumber(watched_until) > now or false

if ARGV[3] == '0' and not (breaker_set or limits_set)
  and call('EXISTS', stem .. 'reserved', stem .. 'awaited', stem .. 'kept_by', stem .. 'kept', stem .. 'downs', stem .. 'full') == 0 then
  if groups_set then release_holds(ended) end
  event_of_all('done', live)
  if count == 0 then drop_records(live) else list_done() end
  return reply
end
