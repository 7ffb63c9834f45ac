-- remove: drops the records of ended jobs. ARGV: now, id… Reply: per id 1 or 0.
-- include: allow_oom drop_records runs
allow_oom()
local reply, gone = {}, {}
for i = 2, #ARGV do
  local id = ARGV[i]
  local run = call('HGET', stem .. 'ended', id)
  reply[#reply + 1] = run and 1 or 0
  if run then
    local state = parse_run(run)
    if call('ZREM', stem .. state, id) == 0 and state == 'done' then call('LREM', stem .. 'recent', 1, id) end
    call('HDEL', stem .. 'ended', id)
    gone[#gone + 1] = id
  end
end
drop_records(gone)
return reply
