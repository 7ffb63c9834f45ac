-- list: a page of ids in one state. ARGV: now, state, cursor, limit. Reply: next cursor ('' at the end), id…
-- A cursor names the member where the last page ended, so that entries added or removed in between do not shift the pages:
-- a letter for the key, its score or index, a space, the member. If the member is gone, the score or index shows where it was.
-- include: allow_oom groups runs
allow_oom() -- to find such a position, the script inserts a member temporarily
local state, limit = ARGV[2], tonumber(ARGV[4])
local section, score, anchor = string.match(ARGV[3], '^(%a)(%S*) ?(.*)$')
local ids, left, next_, reached = {}, limit, '', ARGV[3] == ''

-- True if the page includes entries of this section: the cursor is in this section or an earlier one.
local function due(tag)
  if section == tag then reached = true end
  return reached and left > 0
end

-- The rank after the anchor in a sorted set.
local function behind(key, reverse)
  local command = reverse and 'ZREVRANK' or 'ZRANK'
  local rank = call(command, key, anchor)
  if rank then return rank + 1 end
  if not tonumber(score) then return 0 end
  call('ZADD', key, score, anchor)
  rank = call(command, key, anchor)
  call('ZREM', key, anchor)
  return rank
end

local function from_zset(name, tag, reverse, first, last, cut)
  if not due(tag) then return end
  local key, start = stem .. name, first
  if section == tag then
    start = math.max(first, behind(key, reverse))
  end
  local stop = math.min(start + left, last) - 1
  if stop < start then return end
  local page = call(reverse and 'ZREVRANGE' or 'ZRANGE', key, start, stop, 'WITHSCORES')
  for i = 1, #page, 2 do ids[#ids + 1] = string.sub(page[i], cut) end
  left = left - #page / 2
  if #page > 0 then next_ = tag .. page[#page] .. ' ' .. page[#page - 1] end
end

-- The index of the anchor in the waiting list, counted from the tail: usually unchanged, or lower by the number of entries
-- taken since. An id may occur twice, the first one being that of a cancelled job: returns the nearest one.
local function place_in_line(key)
  local at = tonumber(score) or 0
  if call('LINDEX', key, -at - 1) == anchor then return at + 1 end
  local size, best = call('LLEN', key), nil
  for _, index in ipairs(call('LPOS', key, anchor, 'RANK', -1, 'COUNT', 0, 'MAXLEN', at + 1001)) do
    local found = size - 1 - index
    if not best or math.abs(found - at) < math.abs(best - at) then best = found end
  end
  return best and best + 1 or 0
end

-- Waiting jobs of default priority, next first.
local function from_line(tag)
  if not due(tag) then return end
  local key = stem .. 'ready'
  local start = section == tag and place_in_line(key) or 0
  if start >= call('LLEN', key) then return end
  local page = call('LRANGE', key, -start - left, -start - 1)
  for i = #page, 1, -1 do ids[#ids + 1] = page[i] end
  left = left - #page
  if #page > 0 then next_ = tag .. (start + #page - 1) .. ' ' .. page[1] end
end

-- When a kept job ended.
local function ended_at(id)
  local _, _, _, _, at = parse_run(call('HGET', stem .. 'ended', id))
  return at
end

-- Jobs with default retention, newest first: a short list.
local function from_recent(tag)
  if not due(tag) then return end
  local key, start = stem .. 'recent', 0
  if section == tag then
    local at = call('LPOS', key, anchor)
    start = at and at + 1 or call('LLEN', key)
    if not at then
      for i, id in ipairs(call('LRANGE', key, 0, -1)) do
        if ended_at(id) <= tonumber(score) then
          start = i - 1
          break
        end
      end
    end
  end
  local page = call('LRANGE', key, start, start + left - 1)
  for _, id in ipairs(page) do ids[#ids + 1] = id end
  left = left - #page
  if #page > 0 then next_ = tag .. ended_at(page[#page]) .. ' ' .. page[#page] end
end

-- Hashes have no order: the cursor of HSCAN leads through them, with slightly more entries per page than requested. A small
-- hash returns everything at once, and is listed by name.
local function from_hash(name, tag)
  if not due(tag) then return end
  local cursor, shown = section == tag and score or '0', section == tag and anchor or ''
  local page = call('HSCAN', stem .. name, cursor, 'COUNT', left)
  local fields = {}
  for i = 1, #page[2], 2 do
    if page[2][i] ~= '' then fields[#fields + 1] = page[2][i] end
  end
  local whole = cursor == '0' and page[1] == '0'
  if whole then table.sort(fields) end
  for _, id in ipairs(fields) do
    if whole and left == 0 then return end
    if not whole or id > shown then
      ids[#ids + 1] = id
      left = whole and left - 1 or left
      next_ = tag .. '0 ' .. id
    end
  end
  if not whole then
    left, next_ = page[1] == '0' and 1 or 0, tag .. page[1] .. ' '
  end
end

-- The waiting lists of groups, one after the other by name. The anchor is '<group>\0<id>'.
local function from_groups(tag)
  if not due(tag) then return end
  local group, id = string.match(section == tag and anchor or '', '^([^%z]*)%z(.*)$')
  if not group then group = call('ZRANGE', stem .. 'lines', 0, 0)[1] end
  if id == '' then id = nil end
  for _ = 1, 1000 do
    if not group or left == 0 then return end
    local line = stem .. 'group:' .. group
    local from = 0
    if id then
      anchor = id
      from = behind(line, false)
    end
    local page = call('ZRANGE', line, from, from + left - 1, 'WITHSCORES')
    for i = 1, #page, 2 do ids[#ids + 1] = page[i] end
    left = left - #page / 2
    if #page > 0 then next_ = tag .. page[#page] .. ' ' .. group .. '\0' .. page[#page - 1] end
    id = nil
    group = call('ZRANGEBYLEX', stem .. 'lines', '(' .. group, '+', 'LIMIT', 0, 1)[1]
  end
  -- many empty lists: the caller continues from here
  left, next_ = 0, tag .. '0 ' .. group .. '\0'
end

if state == 'ready' then
  local high, all = call('ZCOUNT', stem .. 'prio', '-inf', '(0'), call('ZCARD', stem .. 'prio')
  from_zset('prio', 'p', false, 0, high, 15)
  from_line('l')
  from_zset('prio', 'q', false, high, all, 15)
  if grouped() then from_groups('g') end
elseif state == 'active' or state == 'blocked' then
  from_hash(state, 'h')
elseif state == 'scheduled' then
  from_zset('scheduled', 's', false, 0, math.huge, 1)
else
  if state == 'done' then from_recent('r') end
  from_zset(state, 'e', true, 0, math.huge, 1)
end
local reply = { left > 0 and '' or next_ }
for _, id in ipairs(ids) do reply[#reply + 1] = id end
return reply
