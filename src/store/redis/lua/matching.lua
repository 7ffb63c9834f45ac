-- matching: leased raw tasks that equal this one, a page at a time. ARGV: now, cursor, task. Reply: next cursor, token…
local page = call('HSCAN', stem .. 'leased', ARGV[2], 'COUNT', 1000)
local reply, fields = { page[1] }, page[2]
for i = 1, #fields, 2 do
  local value = fields[i + 1]
  if string.sub(value, string.find(value, '\0', 1, true) + 1) == ARGV[3] then reply[#reply + 1] = fields[i] end
end
return reply
