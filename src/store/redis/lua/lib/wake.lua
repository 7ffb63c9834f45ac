-- include: queue

-- told: subscribers to raw tasks have already received an event with the count
local function wake(told)
  if call('HDEL', stem .. 'meta', 'hungry') == 0 then return end
  call('PUBLISH', stem .. 'signals', 'w')
  if not told then call('PUBLISH', stem .. 'news', 'w') end
end
