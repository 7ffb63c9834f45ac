-- Raw tasks that were taken by hand at once are leased together, in sheaves of at most fifty: one field instead of fifty. A
-- sheaf stands in `leased` under the token of its first task, as 'worker\0left/all packed': how many of how many are still
-- held, and the packed list of tasks, with false for those that are not. A token begins with the size of its sheaf, so that
-- the field follows from it; one of size 1 is a field of its own.
local leased = stem .. 'leased'

-- Where a lease is kept: its field, and its place in there if that is a sheaf.
local function place_of(token)
  local size, first, index, nonce = string.match(token, '^(%d+)%.(%d+)%-(%d%d%d)(%..*)$')
  if not size or size == '1' or size == '0' then return token, nil end
  local place = index % size
  return string.format('%s.%s-%03d%s', size, first, index - place, nonce), place + 1
end

-- The token of the task at a place of a sheaf.
local function token_at(field, place)
  local head, first, nonce = string.match(field, '^(%d+%.%d+%-)(%d%d%d)(%..*)$')
  return string.format('%s%03d%s', head, first + place - 1, nonce)
end

-- How many of how many a sheaf holds, and where its tasks begin.
local function size_of(value)
  local left, all, start = string.match(value, '^[^%z]*%z(%d+)/(%d+) ()')
  return tonumber(left), tonumber(all), start
end

-- Sheaves that were looked into, by field; false where there is none.
local open = {}
local function open_sheaf(field, value)
  if open[field] == nil then
    value = value or call('HGET', leased, field)
    if value then
      local left, all, start = size_of(value)
      local owner = string.sub(value, 1, string.find(value, '\0', 1, true))
      open[field] = { owner = owner, left = left, before = left, all = all, tasks = cmsgpack.unpack(string.sub(value, start)) }
    else
      open[field] = false
    end
  end
  return open[field]
end

-- Takes a task out of its sheaf: its bytes, or nil where it is not held.
local function pull(sheaf, place)
  local task = sheaf and sheaf.tasks[place]
  if not task then return nil end
  sheaf.tasks[place] = false
  sheaf.left = sheaf.left - 1
  return task
end

-- The bytes of a task that is leased, or nil.
local function find_task(token)
  local field, place = place_of(token)
  if place then
    local sheaf = open_sheaf(field)
    return sheaf and sheaf.tasks[place] or nil
  end
  local value = call('HGET', leased, field)
  return value and string.sub(value, string.find(value, '\0', 1, true) + 1) or nil
end

-- The same, and its lease has ended.
local function end_task(token)
  local field, place = place_of(token)
  if place then return pull(open_sheaf(field), place) end
  local task = find_task(token)
  if task then call('HDEL', leased, field) end
  return task
end

-- Writes down what became of the sheaves; to be called once at the end.
local function close_sheaves()
  local fewer = 0
  for field, sheaf in pairs(open) do
    if sheaf and sheaf.left < sheaf.before then
      fewer = fewer + sheaf.before - sheaf.left
      if sheaf.left == 0 then
        call('HDEL', leased, field)
        fewer = fewer - 1
      else
        local count = sheaf.left .. '/' .. sheaf.all .. ' '
        call('HSET', leased, field, sheaf.owner .. count .. cmsgpack.pack(sheaf.tasks))
      end
    end
  end
  if fewer > 0 then call('HINCRBY', stem .. 'meta', 'sheaved', -fewer) end
end
