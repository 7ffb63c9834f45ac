-- include: queue

-- Exempts the script from the out-of-memory check, on every server version: the script frees more than it takes.
local function allow_oom() call('HDEL', stem .. 'meta', '') end
