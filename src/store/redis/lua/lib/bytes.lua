-- include: queue

-- Adds to the count of bytes that wait; foreign pushes are not counted, so it may not fall below zero.
local function add_bytes(bytes)
  if bytes == 0 then return end
  if call('HINCRBY', stem .. 'meta', 'bytes', bytes) < 0 then call('HSET', stem .. 'meta', 'bytes', 0) end
end
