-- settle, for raw tasks that are done. ARGV: now, packed list of tokens. Reply: 0, then the indexes of those no longer held.
allow_oom()
local reply, leased = { 0 }, stem .. 'leased'
local sealing = call('EXISTS', stem .. 'sealed') == 1
for i, token in ipairs(cmsgpack.unpack(ARGV[2])) do
  local value = sealing and call('HGET', leased, token)
  if value then unseal(token, string.sub(value, string.find(value, '\0', 1, true) + 1), false) end
  if call('HDEL', leased, token) == 0 then reply[#reply + 1] = i end
end
if get_pace() then wake() end
return reply
