-- clear_tasks: removes every waiting raw task. ARGV: now, channel of the original Worqr. Reply: how many there were.
-- include: allow_oom bytes original
local n = call('LLEN', list)
allow_oom()
if call('EXISTS', stem .. 'ready', stem .. 'prio', stem .. 'scheduled', stem .. 'blocked') == 0 then
  call('HDEL', stem .. 'meta', 'bytes')
else
  -- jobs wait too: the bytes that remain are theirs
  local bytes = 0
  for from = 0, n - 1, 1000 do
    for _, task in ipairs(call('LRANGE', list, from, from + 999)) do bytes = bytes + #task end
  end
  add_bytes(-bytes)
end
call('UNLINK', list, stem .. 'seals')
call('PUBLISH', stem .. 'news', 'k')
notify_original(ARGV[2], '')
return n
