-- include: queue drop_records

-- A done job is not dropped for its number within this many ms of its end: somebody may be about to ask for its result.
local YOUNG = 5000

-- Drops the records of ended jobs, or hides those that somebody needs.
local function drop_ended(ids)
  if call('EXISTS', stem .. 'kept') == 0 then return drop_records(ids) end
  local free = {}
  for _, id in ipairs(ids) do
    if call('HEXISTS', stem .. 'kept', id) == 1 then call('HSET', stem .. 'hidden', id, 1) else free[#free + 1] = id end
  end
  drop_records(free)
end

-- Drops jobs of `recent` beyond `count`, at most this many, but none that is young. Returns how many. The oldest are last.
local function drop_recent(count, most)
  local over = math.min(call('LLEN', stem .. 'recent') - count, most)
  while over > 0 do
    local run = call('HGET', stem .. 'ended', call('LINDEX', stem .. 'recent', -over)) or ''
    if (string.match(run, '^%a+ %d+ %d+ %-?%d+ (%d+)') or 0) + YOUNG <= now then
      drop_ended(call('RPOP', stem .. 'recent', over) or {})
      return over
    end
    over = math.floor(over / 2)
  end
  return 0
end
