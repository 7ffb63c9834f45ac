-- include: queue

-- notified: subscribers to raw tasks have already received an event with the count
local function wake(notified)
  if call('HDEL', stem .. 'meta', 'hungry') == 0 then return end
  call('PUBLISH', stem .. 'signals', 'w')
  if not notified then call('PUBLISH', stem .. 'news', 'w') end
end
