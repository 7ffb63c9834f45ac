-- include: queue

-- told: those who take raw tasks by hand have heard of it, with a number
local function wake(told)
  if call('HDEL', stem .. 'meta', 'hungry') == 0 then return end
  call('PUBLISH', stem .. 'signals', 'w')
  if not told then call('PUBLISH', stem .. 'news', 'w') end
end
