-- finish_tasks: ends leases of raw tasks, no matter who holds them, and notifies subscribers.
-- ARGV: now, packed list: a field of `leased`, then the indexes in the task batch in order, one character from '0' on each, or
-- '' for a task in its own field; packed list of results ('' = none, else '=' and JSON text) or '' for none at all; '' if
-- this server knows of every subscriber.
-- Reply: numbers of the tasks no longer held.
-- Event: 'd', then three packed lists one after the other: as ARGV[2], the value of each field, results.
-- include: allow_oom limits task_batch unique_tasks wake
allow_oom()
local items = cmsgpack.unpack(ARGV[2])
local pack, channel = cmsgpack.pack, stem .. 'ends'
local sealing = call('EXISTS', stem .. 'sealed') == 1
local listening = ARGV[4] ~= '' or call('PUBSUB', 'NUMSUB', channel)[2] > 0
local results = listening and ARGV[3] ~= '' and cmsgpack.unpack(ARGV[3])
if get_limits() then wake() end

local reply, number = {}, 0
local finished, values, kept, size = {}, {}, {}, 0
for i = 1, #items, 2 do
  local field, places, value, held = items[i], items[i + 1], nil, nil
  if listening or sealing then value = call('HGET', leased, field) else value = call('HEXISTS', leased, field) == 1 end
  if value then held = end_places(field, places) end
  for k = 1, math.max(1, #places) do
    number = number + 1
    local place = string.sub(places, k, k)
    if not held or (place ~= '' and held ~= places and not string.find(held, place, 1, true)) then
      reply[#reply + 1] = number
    else
      if sealing then end_unique_lock(token_at(field, place), task_at(value, place), false) end
      if results then kept[#kept + 1], size = results[number], size + #results[number] end
    end
  end
  if listening and held and (held ~= '' or places == '') then
    finished[#finished + 1], finished[#finished + 2] = field, held
    values[#values + 1], size = value, size + #value
  end
end

if #finished == 0 then return reply end
if size < 1048576 then
  call('PUBLISH', channel, 'd' .. pack(finished) .. pack(values) .. (results and pack(kept) or ''))
  return reply
end
-- The server's buffer for a subscriber is small: large tasks and results are published one by one.
number = 0
for i, value in ipairs(values) do
  local field, held = finished[2 * i - 1], finished[2 * i]
  for k = 1, math.max(1, #held) do
    number = number + 1
    local result = results and pack({ kept[number] }) or ''
    call('PUBLISH', channel, 'd' .. pack({ field, string.sub(held, k, k) }) .. pack({ value }) .. result)
  end
end
return reply
