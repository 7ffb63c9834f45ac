-- include: queue

-- Moves the unique lock of a task to the first equal task that is leased. A function provides the token of each task.
local function lease_unique_locks(tasks, token_of)
  if call('EXISTS', stem .. 'seals') == 0 then return end
  for i, task in ipairs(tasks) do
    if call('SREM', stem .. 'seals', task) == 1 then call('HSET', stem .. 'sealed', task, token_of(i)) end
  end
end

-- Applies the end of a lease to its unique lock: frees it, or sets it to waiting if the task returns to the queue.
local function end_unique_lock(token, task, back)
  if call('HGET', stem .. 'sealed', task) ~= token then return end
  call('HDEL', stem .. 'sealed', task)
  if back then call('SADD', stem .. 'seals', task) end
end
