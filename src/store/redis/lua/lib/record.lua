-- The parts of a record before its payload, as codec.ts writes them: reservation in ms, unique key that is held while the
-- job waits, and group, each nil if absent; the index where the payload begins; and the options (JSON or a short form), if any.
local function record_head(record)
  local flags, offset = string.byte(record) - 48, 11
  local reservation, key, group
  if flags % 2 == 1 then
    reservation = string.match(record, '^%d+', offset)
    offset = offset + #reservation + 1
  end
  local function counted()
    local size = string.match(record, '^%d+', offset)
    local from = offset + #size + 1
    offset = from + size
    return string.sub(record, from, offset - 1)
  end
  if flags % 4 >= 2 then key = counted() end
  if flags % 64 >= 32 then group = counted() end
  local spec
  if flags % 8 >= 4 then spec = counted() end
  return reservation, key, group, offset, spec
end

-- The group of a job, if it has one. Most records in most queues have none, which their first character shows.
local function group_of(record)
  if (string.byte(record) - 48) % 64 < 32 then return nil end
  local _, _, group = record_head(record)
  return group
end

local function spec_of(record)
  if (string.byte(record) - 48) % 8 < 4 then return nil end
  local _, _, _, _, spec = record_head(record)
  return spec
end
