-- include: queue

-- Raw tasks of one raw claim are leased together, in task batches of at most fifty: one field instead of fifty. A task batch
-- is stored in `leased` under the token of its first task, as 'worker\0' and the packed list of its tasks, and is never
-- rewritten: `over` lists under the same name the indexes of ended tasks, one character each, until all have ended. A token
-- begins with the number of tasks in its batch, and a batch begins at every fiftieth index of a claim, so that the field name
-- follows from the token; 1 means a task in a field of its own, 'worker\0task'.
local leased = stem .. 'leased'

-- The field that stores a lease, and the task's index as a character, or '' for a task in its own field.
local function place_of(token)
  local size, first, index, nonce = string.match(token, '^(%d+)%.(%d+)%-(%d%d%d)(%..*)$')
  if not size or size == '1' then return token, '' end
  local place = index % 50
  return string.format('%s.%s-%03d%s', size, first, index - place, nonce), string.char(48 + place)
end

-- The token of the task at an index of a task batch.
local function token_at(field, place)
  if place == '' then return field end
  local head, first, nonce = string.match(field, '^(%d+%.%d+%-)(%d%d%d)(%..*)$')
  return string.format('%s%03d%s', head, first + string.byte(place) - 48, nonce)
end

-- The bytes of the task at an index, cut out of the packed list: unpacking the list would create a string for each task.
local function task_at(value, place)
  local at = string.find(value, '\0', 1, true) + 1
  if place == '' then return string.sub(value, at) end
  at = at + (string.byte(value, at) == 220 and 3 or 1)
  for left = string.byte(place) - 48, 0, -1 do
    local tag, b, c, d, e = string.byte(value, at, at + 4)
    local size, from = tag - 160, at + 1
    if tag == 217 then size, from = b, at + 2
    elseif tag == 218 then size, from = b * 256 + c, at + 3
    elseif tag == 219 then size, from = ((b * 256 + c) * 256 + d) * 256 + e, at + 5 end
    if left == 0 then return string.sub(value, from, from + size - 1) end
    at = from + size
  end
end

-- Ends the leases at these indexes of an existing field. Returns those that were held.
local function end_places(field, places)
  local all = tonumber(string.match(field, '^%d+'))
  if places == '' then
    call('HDEL', leased, field)
    return places
  end
  local gone = call('HGET', stem .. 'over', field)
  local held = places
  if gone or string.byte(places, -1) - 47 > all then
    held = string.gsub(places, '.', function(place)
      if string.byte(place) - 47 > all or (gone and string.find(gone, place, 1, true)) then return '' end
    end)
  end
  if held == '' then return held end
  gone = (gone or '') .. held
  local fewer = #held
  if #gone == all then
    call('HDEL', leased, field)
    if fewer < all then call('HDEL', stem .. 'over', field) end
    fewer = fewer - 1
  else
    call('HSET', stem .. 'over', field, gone)
  end
  if fewer > 0 then call('HINCRBY', stem .. 'meta', 'sheaved', -fewer) end
  return held
end

-- The bytes of a leased task, with its field and index; or nil.
local function find_task(token)
  local field, place = place_of(token)
  local value = call('HGET', leased, field)
  if not value then return nil end
  if place ~= '' then
    if string.byte(place) - 47 > tonumber(string.match(field, '^%d+')) then return nil end
    local gone = call('HGET', stem .. 'over', field)
    if gone and string.find(gone, place, 1, true) then return nil end
  end
  return task_at(value, place), field, place
end

-- Like find_task, and also ends the lease.
local function end_task(token)
  local task, field, place = find_task(token)
  if task then end_places(field, place) end
  return task
end
