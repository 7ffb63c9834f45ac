-- move_done, in the slot of the first queue: these messages have been delivered. ARGV: now, messages (see move_out)… Reply: 1.
-- include: allow_oom events unique_keys
allow_oom()
for i = 2, #ARGV do
  local to, packed = string.match(ARGV[i], '^([^%z]*)%z[^%z]*%z(.*)$')
  local job = cmsgpack.unpack(packed)
  local id, key, mine = job[1], job[12], job[14]
  if call('HGET', stem .. 'moving', id) == ARGV[i] then
    call('HDEL', stem .. 'moving', id)
    if key ~= '' then free_unique_key(key, id) end
    if mine == 1 then call('ZREM', stem .. 'ids', id) end
    event('moved', id, to)
  end
end
return 1
