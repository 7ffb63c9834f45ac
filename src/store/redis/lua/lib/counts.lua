-- include: leased_count

-- Entries by state: blocked, scheduled, ready, active, done, dead, cancelled, and dead jobs that were dropped.
local function counts()
  local ready = call('LLEN', list) + call('LLEN', stem .. 'ready') + call('ZCARD', stem .. 'prio')
    - (tonumber(call('HGET', stem .. 'meta', 'stale')) or 0) + (tonumber(call('HGET', stem .. 'meta', 'grouped')) or 0)
  return {
    call('HLEN', stem .. 'blocked'), call('ZCARD', stem .. 'scheduled'), ready,
    call('HLEN', stem .. 'active') - call('HEXISTS', stem .. 'active', '') + count_leased(),
    call('LLEN', stem .. 'recent') + call('ZCARD', stem .. 'done'), call('ZCARD', stem .. 'dead'), call('ZCARD', stem .. 'cancelled'),
    tonumber(call('HGET', stem .. 'meta', 'dropped')) or 0,
  }
end
