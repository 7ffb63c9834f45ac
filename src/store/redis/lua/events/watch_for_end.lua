-- await: asks for a signal when these jobs end; at once for those that have. ARGV: now, id… Reply: 1.
-- include: allow_oom runs
allow_oom()
for i = 2, #ARGV do
  local id = ARGV[i]
  local state = find_job(id)
  if call('HEXISTS', stem .. 'jobs', id) == 0 or state == 'done' or state == 'dead' or state == 'cancelled' then
    call('PUBLISH', stem .. 'signals', 'f' .. id)
  else
    call('HSET', stem .. 'awaited', id, 1)
  end
end
return 1
