-- include: plain_session nothing_waits waiting

-- For entries that a waiting worker may have as soon as they arrive: until when its session is alive. Nothing if others wait, or if the queue needs more.
local function hand_over_to(worker)
  local deadline, hungry, waiting = plain_session(worker)
  if not deadline or not nothing_waits() then return end
  stop_waiting(worker, waiting)
  return deadline, hungry
end

-- The next add wakes the workers.
local function stay_hungry(hungry)
  if not hungry then call('HSET', stem .. 'meta', 'hungry', '1') end
end
