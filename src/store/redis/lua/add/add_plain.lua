-- add_plain: add, for jobs without anything special: new, ready now, default priority, no unique key, no upstream jobs.
-- ARGV: now, bytes of the records, 1 if the ids were generated for this call and cannot exist yet (r if some jobs have a reservation),
-- packed list of id, record, id, record …, origin of the signal. Ids are distinct.
-- Reply: per job that was not created: index, 'duplicate', id.
-- first: deliver_jobs
-- include: bytes ended_ids events wake
local fields = cmsgpack.unpack(ARGV[4])
local ids, n = {}, #fields / 2
for i = 1, n do ids[i] = fields[2 * i - 1] end
local known = ARGV[3] == '1' and {} or call('HMGET', stem .. 'jobs', unpack(ids))
if ARGV[3] ~= '1' then find_taken_ids(ids, known) end
if ARGV[3] == 'r' then call('HSETNX', stem .. 'meta', 'minds', 1) end
local reply, bytes = {}, tonumber(ARGV[2])
for i = 1, n do
  if known[i] then
    reply[#reply + 1] = i
    reply[#reply + 1] = 'duplicate'
    reply[#reply + 1] = ids[i]
    bytes = bytes - #fields[2 * i]
  end
end
if #reply == 0 then
  call('HSET', stem .. 'jobs', unpack(fields))
  call('LPUSH', stem .. 'ready', unpack(ids))
else
  for i = 1, n do
    if not known[i] then
      call('HSET', stem .. 'jobs', ids[i], fields[2 * i])
      call('LPUSH', stem .. 'ready', ids[i])
    end
  end
end
if watched() then
  local added = {}
  for i = 1, n do
    if not known[i] then added[#added + 1] = ids[i] end
  end
  event_of_all('added', added)
end
if bytes > 0 then
  add_bytes(bytes)
  wake(false, ARGV[5])
end
return reply
