-- include: queue

-- The keys of a queue that obliterate deletes. Not included: workers, info, raw, meta, rates, marks, arrived, schedules, ticks, lasts.
local COMPANIONS = { 'ready', 'prio', 'scheduled', 'blocked', 'jobs', 'runs', 'active', 'leased', 'over',
  'seals', 'sealed', 'ended', 'reserved', 'recent', 'done', 'dead', 'cancelled',
  'unique', 'unique_ttl', 'ghosts', 'notes', 'awaited', 'edges', 'downs', 'outbox', 'fates', 'fates_ttl',
  'turns', 'lines', 'full', 'reopen', 'rested', 'holds', 'held', 'events', 'ids', 'kept', 'kept_by', 'kept_ttl', 'hidden', 'history', 'moving' }

-- Whether the queue is empty and has no workers and no settings.
local function is_unused()
  local keys = { list }
  for _, name in ipairs({ 'jobs', 'leased', 'unique', 'edges', 'downs', 'outbox', 'fates', 'seals', 'sealed', 'lines', 'events',
    'workers', 'marks', 'schedules', 'ids', 'kept_by', 'moving', 'arrived' }) do
    keys[#keys + 1] = stem .. name
  end
  if call('EXISTS', unpack(keys)) > 0 then return false end
  local set = call('HMGET', stem .. 'meta', 'paused', 'pace', 'watched', 'breaker')
  return not set[1] and not set[2] and not set[4] and (tonumber(set[3]) or 0) <= now
end
