-- include: queue runs record drop_ended

-- Records that somebody still needs are dropped neither by count nor by age: those of upstream jobs until their dependents have
-- ended, and those that somebody waited for until a minute after their end. `kept` counts the holders of a record, `kept_by` names
-- them: '<queue>\0<id>' of a dependent (an empty queue is this one), or '@' for those who wait. A record that would have been dropped
-- is `hidden`: it can be read by its id, is neither listed nor counted, and goes with its last holder.

local function keep_record(id, holder)
  if call('HSETNX', stem .. 'kept_by', id .. '\0' .. holder, 1) == 1 then call('HINCRBY', stem .. 'kept', id, 1) end
end

local function release_record(id, holder)
  if call('HDEL', stem .. 'kept_by', id .. '\0' .. holder) == 0 then return end
  if call('HINCRBY', stem .. 'kept', id, -1) > 0 then return end
  call('HDEL', stem .. 'kept', id)
  if call('HEXISTS', stem .. 'hidden', id) == 1 then drop_records({ id }) end
end

-- Jobs that have ended no longer need their upstream jobs and children in this queue; the client, or a sweep, releases those in other
-- queues.
local function release_needs(ids)
  if call('EXISTS', stem .. 'kept_by') == 0 then return end
  for _, id in ipairs(ids) do
    local children = call('HGET', stem .. 'notes', 'c' .. id)
    if children then
      for _, child in ipairs(cjson.decode(string.match(children, '%[.*$'))) do release_record(child.id, '\0' .. id) end
    end
    local record = call('HGET', stem .. 'jobs', id)
    local spec = record and spec_of(record)
    if spec and string.find(spec, '"needs"', 1, true) then
      for _, need in ipairs(cjson.decode(spec).needs or {}) do release_record(need.id, '\0' .. id) end
    end
  end
end

-- Of these jobs, those whose end somebody waits for. Their records are kept for another minute.
local function take_awaited(ids)
  local awaited = {}
  if call('EXISTS', stem .. 'awaited') == 0 then return awaited end
  for _, id in ipairs(ids) do
    if call('HDEL', stem .. 'awaited', id) == 1 then
      awaited[#awaited + 1] = id
      keep_record(id, '@')
      call('ZADD', stem .. 'kept_ttl', now + 60000, id)
    end
  end
  return awaited
end

local function announce_ends(awaited)
  for _, id in ipairs(awaited) do call('PUBLISH', stem .. 'signals', 'f' .. id) end
end
