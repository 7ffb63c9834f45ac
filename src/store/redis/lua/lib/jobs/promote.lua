-- include: runs enqueue_job

local function promote_due(limit)
  local due = call('ZRANGEBYSCORE', stem .. 'scheduled', '-inf', now, 'LIMIT', 0, limit)
  if #due == 0 then return 0 end
  call('ZREM', stem .. 'scheduled', unpack(due))
  local runs = call('HMGET', stem .. 'runs', unpack(due))
  for i, id in ipairs(due) do
    local _, attempt, crashes, priority, at, tail = parse_run(runs[i])
    enqueue_job(id, attempt, crashes, priority, tail, false, at)
  end
  return #due
end
