-- include: queue

-- Whether a new entry would be the next one to be claimed, in a queue with a plain session.
local function nothing_waits()
  return call('EXISTS', list, stem .. 'ready', stem .. 'runs', stem .. 'prio', stem .. 'ghosts', stem .. 'scheduled') == 0
end
