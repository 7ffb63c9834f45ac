-- include: queue

-- The seal of a unique task goes to the first equal one that is leased. The token of each task comes from a function.
local function lease_unique_locks(tasks, token_of)
  if call('EXISTS', stem .. 'seals') == 0 then return end
  for i, task in ipairs(tasks) do
    if call('SREM', stem .. 'seals', task) == 1 then call('HSET', stem .. 'sealed', task, token_of(i)) end
  end
end

-- A lease ends: the seal it carries is free, or waits again with a task that goes back.
local function end_unique_lock(token, task, back)
  if call('HGET', stem .. 'sealed', task) ~= token then return end
  call('HDEL', stem .. 'sealed', task)
  if back then call('SADD', stem .. 'seals', task) end
end
