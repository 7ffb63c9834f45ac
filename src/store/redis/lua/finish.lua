-- finish: ends leases of raw tasks, whoever holds them, and tells the listeners.
-- ARGV: now, packed list: a field of `leased`, then the places of a sheaf in order, a character from '0' on each, or '' for a
-- task on its own; packed list of results ('' = none, else '=' and JSON text) or '' for none at all; '' where this server
-- knows of every listener.
-- Reply: numbers of those no longer held.
-- News: 'd', then three packed lists one after the other: as ARGV[2], the value of each field (false where there was none), results.
allow_oom()
local items = cmsgpack.unpack(ARGV[2])
local fields = {}
for i = 1, #items, 2 do fields[#fields + 1] = items[i] end
local values = call('HMGET', leased, unpack(fields))
if get_pace() then wake() end

local sealing = call('EXISTS', stem .. 'sealed') == 1
local reply, number, over, fewer, size = {}, 0, {}, 0, #ARGV[3]
for f, field in ipairs(fields) do
  local value, places = values[f], items[2 * f]
  local n = math.max(1, #places)
  if not value then
    for i = number + 1, number + n do reply[#reply + 1] = i end
  elseif places == '' then
    over[#over + 1] = field
    if sealing then unseal(field, string.sub(value, string.find(value, '\0', 1, true) + 1), false) end
  else
    local left, all = size_of(value)
    if not sealing and left == all and n == all and string.byte(places, n) == 47 + all then
      over[#over + 1] = field
      fewer = fewer + all - 1
    else
      local sheaf = open_sheaf(field, value)
      for i = 1, n do
        local place = string.byte(places, i) - 47
        local task = pull(sheaf, place)
        if not task then reply[#reply + 1] = number + i elseif sealing then unseal(token_at(field, place), task, false) end
      end
    end
  end
  if value then size = size + #value end
  number = number + n
end
if #over > 0 then call('HDEL', leased, unpack(over)) end
if fewer > 0 then call('HINCRBY', stem .. 'meta', 'sheaved', -fewer) end
close_sheaves()

local pack, channel = cmsgpack.pack, stem .. 'ends'
if #reply == number or (ARGV[4] == '' and call('PUBSUB', 'NUMSUB', channel)[2] == 0) then return reply end
if size < 1048576 then
  call('PUBLISH', channel, 'd' .. ARGV[2] .. pack(values) .. ARGV[3])
  return reply
end
-- A listener's buffer on the server is small: large tasks and results are told one by one.
local results = ARGV[3] == '' and {} or cmsgpack.unpack(ARGV[3])
number = 0
for f, field in ipairs(fields) do
  local value, places = values[f], items[2 * f]
  for i = 1, math.max(1, #places) do
    number = number + 1
    local result = results[number] and pack({ results[number] }) or ''
    if value then call('PUBLISH', channel, 'd' .. pack({ field, string.sub(places, i, i) }) .. pack({ value }) .. result) end
  end
end
return reply
