-- enqueue_tasks: adds groups of raw tasks at the back of the plain list, each group entirely or not at all.
-- ARGV: now, packed list of groups: 'p' (plain) or 'u' (unique) and the number of tasks, task…; channel of the original Worqr.
-- Reply: numbers of the unique groups that were refused because an equal unique task waits or is leased.
-- include: bytes original wake
local items = cmsgpack.unpack(ARGV[2])
local seals, sealed = stem .. 'seals', stem .. 'sealed'
-- If another program emptied the list directly, the tasks of the waiting unique locks are gone with it.
local stale = call('LLEN', list) == 0

local function is_free(from, to)
  local seen = {}
  for i = from, to do
    local task = items[i]
    if seen[task] or call('HEXISTS', sealed, task) == 1 then return false end
    if not stale and call('SISMEMBER', seals, task) == 1 then return false end
    seen[task] = true
  end
  return true
end

local reply, pushed, bytes, p, group = {}, 0, 0, 1, 0
while p <= #items do
  local unique, n = string.byte(items[p]) == 117, tonumber(string.sub(items[p], 2))
  local first, last = p + 1, p + n
  group = group + 1
  if unique and not is_free(first, last) then
    reply[#reply + 1] = group
  else
    for i = first, last, 1000 do
      local stop = math.min(i + 999, last)
      call('LPUSH', list, unpack(items, i, stop))
      if stale then call('UNLINK', seals) end
      stale = false
      if unique then call('SADD', seals, unpack(items, i, stop)) end
    end
    for i = first, last do bytes = bytes + #items[i] end
    pushed = pushed + n
  end
  p = last + 1
end
if pushed > 0 then
  add_bytes(bytes)
  call('PUBLISH', stem .. 'news', 'w' .. pushed)
  notify_original(ARGV[3], pushed .. '')
  wake(true)
end
return reply
