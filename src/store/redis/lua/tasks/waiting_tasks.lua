-- waiting_tasks: how many raw tasks wait. If none does, the next task to arrive triggers an event. ARGV: now.
-- Reply: the number.
-- include: allow_oom
allow_oom()
local n = call('LLEN', list)
if n == 0 then call('HSET', stem .. 'meta', 'hungry', 1) end
return n
