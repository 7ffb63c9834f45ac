-- watch_for_end: requests a signal when these jobs end; sends it at once for jobs that have ended. ARGV: now, id… Reply: 1.
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
