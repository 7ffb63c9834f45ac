-- list: a page of ids in one state. ARGV: now, state, cursor, limit. Reply: next cursor ('' at the end), id…
local state, cursor, limit = ARGV[2], tonumber(ARGV[3]) or 0, tonumber(ARGV[4])
local ids, last = {}, cursor + limit - 1
if state == 'ready' then
  local high = call('ZCOUNT', stem .. 'prio', '-inf', '(0')
  local refs = call('LLEN', stem .. 'ready')
  for _, member in ipairs(cursor < high and call('ZRANGE', stem .. 'prio', cursor, math.min(last, high - 1)) or {}) do
    ids[#ids + 1] = string.sub(member, 15)
  end
  local from, to = math.max(cursor, high) - high, last - high
  if to >= 0 and from < refs then
    local slice = call('LRANGE', stem .. 'ready', -to - 1, -from - 1)
    for i = #slice, 1, -1 do ids[#ids + 1] = slice[i] end
  end
  from, to = math.max(cursor, high + refs) - refs, last - refs
  for _, member in ipairs(to >= high and call('ZRANGE', stem .. 'prio', from, to) or {}) do
    ids[#ids + 1] = string.sub(member, 15)
  end
elseif state == 'scheduled' then
  ids = call('ZRANGE', stem .. 'scheduled', cursor, last)
elseif state == 'active' or state == 'blocked' then
  local page = call('HSCAN', stem .. state, ARGV[3] == '' and '0' or ARGV[3], 'COUNT', limit)
  local reply = { page[1] == '0' and '' or page[1] }
  for i = 1, #page[2], 2 do
    if page[2][i] ~= '' then reply[#reply + 1] = page[2][i] end
  end
  return reply
else
  local recent = state == 'done' and call('LLEN', stem .. 'recent') or 0
  ids = cursor < recent and call('LRANGE', stem .. 'recent', cursor, last) or {}
  if last >= recent then
    for _, id in ipairs(call('ZREVRANGE', stem .. state, math.max(cursor, recent) - recent, last - recent)) do ids[#ids + 1] = id end
  end
end
local reply = { #ids < limit and '' or tostring(cursor + limit) }
for _, id in ipairs(ids) do reply[#reply + 1] = id end
return reply
