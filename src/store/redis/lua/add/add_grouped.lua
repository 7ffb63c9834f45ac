-- add_grouped: add, for jobs with a group and otherwise default settings: ready now, default priority, no unique key, no
-- upstream jobs.
-- ARGV: now, bytes of the records, packed list of id, record, group, id, record, group …, origin of the signal. Ids are
-- distinct.
-- Reply: per job that was not created: index, 'duplicate', id.
-- include: bytes ended_ids events groups wake
local fields = cmsgpack.unpack(ARGV[3])
local n, ids, all = #fields / 3, {}, {}
for i = 1, n do all[i] = fields[3 * i - 2] end
local known, records, lines, order, reply = call('HMGET', stem .. 'jobs', unpack(all)), {}, {}, {}, {}
find_taken_ids(all, known)
local bytes, seq = tonumber(ARGV[2]), call('HINCRBY', stem .. 'meta', 'back', n) - n
for i = 1, n do
  local id, record, group = fields[3 * i - 2], fields[3 * i - 1], fields[3 * i]
  if known[i] then
    for _, value in ipairs({ i, 'duplicate', id }) do reply[#reply + 1] = value end
    bytes = bytes - #record
  else
    ids[#ids + 1] = id
    records[#records + 1] = id
    records[#records + 1] = record
    local line = lines[group]
    if not line then
      line = {}
      lines[group] = line
      order[#order + 1] = group
    end
    line[#line + 1] = rank(0, seq + i)
    line[#line + 1] = id
  end
end
if #ids == 0 then return reply end
call('HSET', stem .. 'jobs', unpack(records))
begin_groups()
call('HINCRBY', stem .. 'meta', 'grouped', #ids)
for _, group in ipairs(order) do
  call('ZADD', stem .. 'group:' .. group, unpack(lines[group]))
  if call('ZADD', stem .. 'lines', 'NX', 0, group) == 1 then enqueue_group(group) end
end
event_of_all('added', ids)
add_bytes(bytes)
wake(false, ARGV[4])
return reply
