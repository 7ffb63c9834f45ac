-- include: queue

local function parse_run(run)
  if not run then return 'ready', 0, 0, 0, 0, '' end
  local state, attempt, crashes, priority, at, tail = string.match(run, '^(%a+) (%d+) (%d+) (%-?%d+) (%d+) ?(.*)$')
  return state, tonumber(attempt), tonumber(crashes), tonumber(priority), tonumber(at), tail
end

-- The state of a job and its run, if it has one. Only for ids that have a record.
local function find_job(id)
  local run = call('HGET', stem .. 'runs', id)
  if run then return (parse_run(run)), run end
  run = call('HGET', stem .. 'active', id)
  if run then return 'active', run end
  run = call('HGET', stem .. 'ended', id)
  if run then return (parse_run(run)), run end
  return 'ready', false
end
