-- include: queue

-- Adjusts the count of waiting bytes. It must not fall below zero, as tasks that other programs push are not counted.
local function add_bytes(bytes)
  if bytes == 0 then return end
  if call('HINCRBY', stem .. 'meta', 'bytes', bytes) < 0 then call('HSET', stem .. 'meta', 'bytes', 0) end
end
