-- include: queue

-- notified: subscribers to raw tasks have already received an event with the count. origin: who has told its own workers already.
local function wake(notified, origin)
  if call('HDEL', stem .. 'meta', 'hungry') == 0 then return end
  call('PUBLISH', stem .. 'signals', 'w' .. (origin or ''))
  if not notified then call('PUBLISH', stem .. 'news', 'w') end
end
