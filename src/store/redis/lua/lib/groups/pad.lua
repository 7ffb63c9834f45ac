-- include: queue

-- Redis stores a small hash as a flat list, where every lookup is a linear scan; one long value converts it to a hash table
-- for good. The field '' is free, as no id and no group name is empty.
local function pad(hash) call('HSETNX', stem .. hash, '', string.rep(' ', 65)) end
