-- include: queue

-- For a queue that needs none of the slower steps of a claim, with a worker whose session exists: until when that is alive, whether the next add has to wake
-- the workers, who waits for a delivery, and until when somebody listens to events. Otherwise nothing.
local function plain_session(worker)
  local paused, breaker, limits, groups, minds, watched_until, hungry, waiting =
    unpack(call('HMGET', stem .. 'meta', 'paused', 'breaker', 'pace', 'groups', 'minds', 'watched', 'hungry', 'waiting'))
  if paused or breaker or limits or groups or minds then return end
  local deadline = tonumber(call('ZSCORE', stem .. 'workers', worker) or -1)
  if deadline >= 0 then return deadline, hungry, waiting, tonumber(watched_until or 0) end
end

-- With the server's clock, a session that was renewed just now is not renewed again: writing the time costs more than everything else in an empty claim.
local function renew_session(worker, deadline, lease)
  if ARGV[1] ~= '' or deadline < now + lease * 15 / 16 then call('ZADD', stem .. 'workers', 'XX', 'GT', now + lease, worker) end
end
