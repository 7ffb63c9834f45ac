-- include: queue

local function free_unique_key(key, id)
  local holder = call('HGET', stem .. 'unique', key)
  if holder and string.match(holder, '^%d+ (.*)$') == id then
    call('HDEL', stem .. 'unique', key)
    call('ZREM', stem .. 'unique_ttl', key)
  end
end
