-- list: a page of ids in one state. ARGV: now, state, cursor, limit. Reply: next cursor ('' at the end), id…
-- A cursor names the member where the last page ended, so that what comes and goes meanwhile shifts nothing: a letter for
-- the key, the score, a space, the member. Where the member is gone, its score says where it stood.
local state, limit = ARGV[2], tonumber(ARGV[4])
local section, score, anchor = string.match(ARGV[3], '^(%a)(%S*) ?(.*)$')
local ids, left, next_, reached = {}, limit, '', ARGV[3] == ''

-- True when this section has something to give: it is the cursor's, or stands behind it.
local function due(tag)
  if section == tag then reached = true end
  return reached and left > 0
end

local function from_zset(name, tag, reverse, first, last, cut)
  if not due(tag) then return end
  local key, start = stem .. name, first
  if section == tag then
    local rank = call(reverse and 'ZREVRANK' or 'ZRANK', key, anchor)
    local before = reverse and call('ZCOUNT', key, '(' .. score, '+inf') or call('ZCOUNT', key, '-inf', '(' .. score)
    start = math.max(first, rank and rank + 1 or before)
  end
  local stop = math.min(start + left, last) - 1
  if stop < start then return end
  local page = call(reverse and 'ZREVRANGE' or 'ZRANGE', key, start, stop, 'WITHSCORES')
  for i = 1, #page, 2 do ids[#ids + 1] = string.sub(page[i], cut) end
  left = left - #page / 2
  if #page > 0 then next_ = tag .. page[#page] .. ' ' .. page[#page - 1] end
end

-- Entries of a list, from the tail when it is worked off there.
local function from_list(name, tag, tail)
  if not due(tag) then return end
  local key, start = stem .. name, 0
  local size = call('LLEN', key)
  if section == tag then
    local at = tail and call('LPOS', key, anchor, 'RANK', -1) or call('LPOS', key, anchor)
    if at then start = (tail and size - 1 - at or at) + 1 end
  end
  if start >= size then return end
  local stop = start + left - 1
  local page = tail and call('LRANGE', key, -stop - 1, -start - 1) or call('LRANGE', key, start, stop)
  for i = 1, #page do ids[#ids + 1] = page[tail and #page + 1 - i or i] end
  left = left - #page
  if #page > 0 then next_ = tag .. '0 ' .. page[tail and 1 or #page] end
end

-- Hashes have no order: their own cursor leads through them. `wanted` says which fields count.
local function from_hash(name, tag, wanted)
  if not due(tag) then return end
  local page = call('HSCAN', stem .. name, section == tag and score or '0', 'COUNT', math.max(left, 10))
  for i = 1, #page[2], 2 do
    if wanted(page[2][i], page[2][i + 1]) then ids[#ids + 1] = page[2][i] end
  end
  left = 0
  next_ = page[1] == '0' and '' or tag .. page[1] .. ' '
  if next_ == '' then left = 1 end
end

local function is_job(id) return id ~= '' end

-- The lines of groups, one after the other by name. The anchor is '<group>\0<id>'.
local function from_groups(tag)
  if not due(tag) then return end
  local group, id = string.match(section == tag and anchor or '', '^([^%z]*)%z(.*)$')
  if not group then group = call('ZRANGE', stem .. 'lines', 0, 0)[1] end
  for _ = 1, 1000 do
    if not group or left == 0 then return end
    local line = stem .. 'group:' .. group
    local from = id and (call('ZRANK', line, id) or call('ZCOUNT', line, '-inf', '(' .. score) - 1) + 1 or 0
    local page = call('ZRANGE', line, from, from + left - 1, 'WITHSCORES')
    for i = 1, #page, 2 do ids[#ids + 1] = page[i] end
    left = left - #page / 2
    if #page > 0 then next_ = tag .. page[#page] .. ' ' .. group .. '\0' .. page[#page - 1] end
    id = nil
    group = call('ZRANGEBYLEX', stem .. 'lines', '(' .. group, '+', 'LIMIT', 0, 1)[1]
  end
  -- many empty lines: the caller comes back for the rest
  left, next_ = 0, tag .. '0 ' .. group .. '\0'
end

if state == 'ready' then
  local high, all = call('ZCOUNT', stem .. 'prio', '-inf', '(0'), call('ZCARD', stem .. 'prio')
  from_zset('prio', 'p', false, 0, high, 15)
  from_list('ready', 'l', true)
  from_zset('prio', 'q', false, high, all, 15)
  if grouped() then from_groups('g') end
elseif state == 'active' or state == 'blocked' then
  from_hash(state, 'h', is_job)
elseif state == 'scheduled' then
  from_zset('scheduled', 's', false, 0, math.huge, 1)
else
  if state == 'done' then from_list('recent', 'r', false) end
  from_zset(state, 'e', true, 0, math.huge, 1)
end
local reply = { left > 0 and '' or next_ }
for _, id in ipairs(ids) do reply[#reply + 1] = id end
return reply
