-- include: queue unique_tasks

-- Leases raw tasks that were claimed together to a session, as task_batch.lua describes. Large tasks get a field each: a task batch is
-- stored until all of its tasks have ended. Returns the size of the batches (50 or 1), and the packed tasks of each batch, or of all.
local function lease_tasks(tasks, bytes, first, worker, nonce)
  local n, size = #tasks, bytes <= #tasks * 1024 and 50 or 1
  local head, tail, owner, pack = '.' .. first .. '-', '.' .. nonce, worker .. '\0', cmsgpack.pack
  local function token_of(i)
    return math.min(size, n - (i - 1 - (i - 1) % size)) .. head .. string.format('%03d', i - 1) .. tail
  end
  local packs, fields, k = {}, {}, 0
  for i = 1, n, size do
    local batch = n > size and size > 1 and { unpack(tasks, i, math.min(i + size - 1, n)) } or tasks
    local packed = size > 1 and pack(batch)
    if packed then packs[#packs + 1] = packed end
    fields[k + 1], fields[k + 2] = token_of(i), owner .. ((size == 1 or #batch == 1) and tasks[i] or packed)
    k = k + 2
  end
  call('HSET', stem .. 'leased', unpack(fields))
  if size == 1 then packs[1] = pack(tasks) end
  if n > k / 2 then call('HINCRBY', stem .. 'meta', 'sheaved', n - k / 2) end
  lease_unique_locks(tasks, token_of)
  return size, packs
end

-- The size of all tasks in bytes.
local function size_of(tasks)
  local bytes = 0
  for i = 1, #tasks do bytes = bytes + #tasks[i] end
  return bytes
end
