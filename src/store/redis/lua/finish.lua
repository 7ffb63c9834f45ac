-- finish: ends leases of raw tasks, whoever holds them, and tells the listeners.
-- ARGV: now, packed list of distinct tokens, packed list of results ('' = none, else '=' and JSON text) or '' for none at all,
-- '' where this server knows of every listener.
-- Reply: numbers of those no longer held.
-- News: 'd', then three packed lists one after the other: tokens, 'session\0task' of each (false where it was not held), results.
allow_oom()
local tokens = cmsgpack.unpack(ARGV[2])
local values = call('HMGET', stem .. 'leased', unpack(tokens))
call('HDEL', stem .. 'leased', unpack(tokens))

if get_pace() then wake() end

local reply, size = {}, #ARGV[3]
for i = 1, #tokens do
  if values[i] then size = size + #values[i] else reply[#reply + 1] = i end
end
if call('EXISTS', stem .. 'sealed') == 1 then
  for i, value in ipairs(values) do
    if value then unseal(tokens[i], string.sub(value, string.find(value, '\0', 1, true) + 1), false) end
  end
end

local pack, channel = cmsgpack.pack, stem .. 'ends'
if ARGV[4] == '' and call('PUBSUB', 'NUMSUB', channel)[2] == 0 then return reply end
if size < 1048576 then
  if #reply < #tokens then call('PUBLISH', channel, 'd' .. ARGV[2] .. pack(values) .. ARGV[3]) end
  return reply
end
-- A listener's buffer on the server is small: large tasks are told one by one.
local results = ARGV[3] == '' and {} or cmsgpack.unpack(ARGV[3])
for i, value in ipairs(values) do
  if value then
    local result = results[i] and pack({ results[i] }) or ''
    call('PUBLISH', channel, 'd' .. pack({ tokens[i] }) .. pack({ value }) .. result)
  end
end
return reply
