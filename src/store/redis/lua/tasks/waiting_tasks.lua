-- waiting: how many raw tasks wait. Whoever asks in vain is told when something comes. ARGV: now. Reply: the number.
-- include: allow_oom
allow_oom()
local n = call('LLEN', list)
if n == 0 then call('HSET', stem .. 'meta', 'hungry', 1) end
return n
