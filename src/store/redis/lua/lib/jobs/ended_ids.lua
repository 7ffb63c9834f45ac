-- include: queue notes

-- Ids that were chosen by the producer stay taken for a while after the end of their job, even if its record is dropped.
local function remember_ids(ids, ms)
  local fields = {}
  for i, id in ipairs(ids) do fields[2 * i - 1], fields[2 * i] = now + ms, id end
  if #fields > 0 then call('ZADD', stem .. 'ids', unpack(fields)) end
end

-- Marks in `known`, which says which of these ids have records, which of them are still taken. A hidden record that is only there
-- for somebody who waited for it gives way to a new job.
local function find_taken_ids(ids, known)
  if call('EXISTS', stem .. 'hidden') == 1 then
    for i, id in ipairs(ids) do
      if known[i] and call('HEXISTS', stem .. 'hidden', id) == 1 and call('HGET', stem .. 'kept', id) == '1'
        and call('HDEL', stem .. 'kept_by', id .. '\0@') == 1 then
        for _, name in ipairs({ 'kept', 'hidden', 'jobs', 'ended' }) do call('HDEL', stem .. name, id) end
        call('ZREM', stem .. 'kept_ttl', id)
        drop_notes(id)
        known[i] = false
      end
    end
  end
  if call('EXISTS', stem .. 'ids') == 0 then return end
  for i, score in ipairs(call('ZMSCORE', stem .. 'ids', unpack(ids))) do
    if score and tonumber(score) > now then known[i] = true end
  end
end
