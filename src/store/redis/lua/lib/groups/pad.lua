-- include: queue

-- A small hash is a flat list in which every look-up is a walk; one long value makes it a table for good. No id is empty,
-- and no group's name.
local function pad(hash) call('HSETNX', stem .. hash, '', string.rep(' ', 65)) end
