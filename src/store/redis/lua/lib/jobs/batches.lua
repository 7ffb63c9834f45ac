-- include: queue

-- The counts of a batch: policy, 1 while it is open, number of members, how many are done, dead and cancelled, and since when it exists.
-- Nil if the job is not that of a batch.
local function read_batch(id)
  local text = call('HGET', stem .. 'notes', 'b' .. id)
  if not text then return nil end
  local policy, open, total, done, dead, cancelled, since = string.match(text, '^(%a+) (%d) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  return { policy = policy, open = open, total = tonumber(total), done = tonumber(done), dead = tonumber(dead), cancelled = tonumber(cancelled), since = since }
end

local function write_batch(id, batch)
  local text = table.concat({ batch.policy, batch.open, batch.total, batch.done, batch.dead, batch.cancelled, batch.since }, ' ')
  call('HSET', stem .. 'notes', 'b' .. id, text)
end

local function open_batch(id, policy)
  write_batch(id, { policy = policy, open = 1, total = 0, done = 0, dead = 0, cancelled = 0, since = string.format('%.0f', now) })
  call('HSET', stem .. 'edges', id .. '\0\0', 's')
end

-- Whether the edge of a member (m and the time of its reservation) is of this batch, not of an earlier one with the same id.
local function is_member_of(batch, edge) return batch and tonumber(string.sub(edge, 2)) >= tonumber(batch.since) end

-- A member has ended. Returns whether the job of its batch runs now, although others have not ended; or false and true if the edge is that
-- of an earlier batch.
local function count_member(id, edge, state)
  local batch = read_batch(id)
  if not is_member_of(batch, edge) then return false, true end
  local how = batch[state] and state or 'cancelled'
  batch[how] = batch[how] + 1
  local runs = batch.policy == 'failure' and state ~= 'done'
  if runs then
    batch.open = '0'
    call('HDEL', stem .. 'edges', id .. '\0\0')
  end
  write_batch(id, batch)
  return runs
end

-- A batch is open while its job waits and the edge that closing it removes is there.
local function is_open_batch(id) return call('HEXISTS', stem .. 'edges', id .. '\0\0') == 1 and call('HEXISTS', stem .. 'blocked', id) == 1 end
