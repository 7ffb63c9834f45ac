-- include: queue runs drop_records

-- Removes the record of an ended job and frees its id; returns whether there was a record.
local function remove_ended(id)
  call('ZREM', stem .. 'ids', id)
  local run = call('HGET', stem .. 'ended', id)
  if not run then return false end
  local state = parse_run(run)
  if call('ZREM', stem .. state, id) == 0 and state == 'done' then call('LREM', stem .. 'recent', 1, id) end
  drop_records({ id })
  return true
end
