-- include: queue events

-- The breaker of the queue, if one is set: after so many failures in a row it is open, and `till` is when it lets the next job through.
-- `trial` is the job that it let through last: the token without the attempt. While it is open, only this one decides.
local breaker_read, breaker
local breaker_events = {}

local function get_breaker()
  if breaker_read == nil then
    local set, state = unpack(call('HMGET', stem .. 'meta', 'breaker', 'broken'))
    breaker_read = set ~= false
    if set then
      local failures, pause = string.match(set, '^(%d+) (%d+)$')
      local failed, till, trial = string.match(state or '0 0 ', '^(%d+) (%d+) (.*)$')
      breaker = { failures = tonumber(failures), pause = tonumber(pause), failed = tonumber(failed), till = tonumber(till), trial = trial }
    end
  end
  return breaker_read and breaker
end

local function save_breaker()
  if breaker.failed == 0 and breaker.till == 0 then
    call('HDEL', stem .. 'meta', 'broken')
  else
    call('HSET', stem .. 'meta', 'broken', string.format('%.0f %.0f %s', breaker.failed, breaker.till, breaker.trial))
  end
end

-- Whether the outcome of a job counts: the breaker is closed, or this is the one that it let through.
local function decides(token)
  return breaker.till == 0 or (breaker.trial ~= '' and string.match(token, '^%d+%.(.*)$') == breaker.trial)
end

local function count_success(token)
  if not get_breaker() or (breaker.failed == 0 and breaker.till == 0) or not decides(token) then return end
  if breaker.till > 0 then
    breaker_events[#breaker_events + 1] = 'closed'
    call('PUBLISH', stem .. 'signals', 'w')
  end
  breaker.failed, breaker.till, breaker.trial = 0, 0, ''
  save_breaker()
end

local function count_failure(token)
  if not get_breaker() or not decides(token) then return end
  breaker.failed = breaker.failed + 1
  if breaker.till > 0 or breaker.failed >= breaker.failures then
    breaker.till, breaker.trial = now + breaker.pause, ''
    breaker_events[#breaker_events + 1] = 'open'
  end
  save_breaker()
end

-- Records whether it has opened or closed; to be called after the events of the jobs.
local function tell_breaker()
  for _, what in ipairs(breaker_events) do event('breaker', '', what) end
end
