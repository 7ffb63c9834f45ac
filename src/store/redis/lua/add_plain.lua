-- add, for jobs with nothing special about them: fresh, ready now, default priority, no key, no upstream.
-- ARGV: now, bytes of the records, then per job: id, record. Ids are distinct.
-- Reply: per job that was not created: index, 'duplicate', id.
local ids, last = {}, #ARGV
for i = 3, last, 2 do ids[#ids + 1] = ARGV[i] end
local known = call('HMGET', stem .. 'jobs', unpack(ids))
local reply, bytes = {}, tonumber(ARGV[2])
for i = 1, #ids do
  if known[i] then
    reply[#reply + 1] = i
    reply[#reply + 1] = 'duplicate'
    reply[#reply + 1] = ids[i]
    bytes = bytes - #ARGV[2 * i + 2]
  end
end
if #reply == 0 then
  call('HSET', stem .. 'jobs', unpack(ARGV, 3))
  call('LPUSH', stem .. 'ready', unpack(ids))
else
  for i = 1, #ids do
    if not known[i] then
      call('HSET', stem .. 'jobs', ids[i], ARGV[2 * i + 2])
      call('LPUSH', stem .. 'ready', ids[i])
    end
  end
end
if bytes > 0 then
  weigh(bytes)
  wake()
end
return reply
