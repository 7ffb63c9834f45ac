-- park: an active job waits for its children; if all have ended, it goes to the back of its queue.
-- ARGV: now, token, id, 'attempt crashes priority', 'keep-ms keep-count:id-window unique-key' for the case that it dies, the children in
--   their stored form, then per child: policy (s or f), queue ('' = this one), id.
-- Reply: outbox flag, 1 or 0 if the token no longer matches.
-- include: allow_oom add_dependencies attempts dependencies release_groups tokens
allow_oom()
local token, id = ARGV[2], ARGV[3]
local run = call('HGET', stem .. 'active', id)
if not has_token(run, token) then return { 0, 0 } end
call('HDEL', stem .. 'active', id)
call('ZREM', stem .. 'reserved', id)
call('HSET', stem .. 'notes', 'c' .. id, ARGV[6])
event('parked', id)
local children = {}
for p = 7, #ARGV, 3 do children[#children + 1] = p end
local left, failed = link_upstreams(id, children, 'a child')
local attempt, crashes, priority = string.match(ARGV[4], '^(%d+) (%d+) (%-?%d+)$')
add_bytes(call('HSTRLEN', stem .. 'jobs', id))
if failed then
  release_groups({ run })
  local skipped, state = skip_job(id, failed, attempt, crashes, priority, 'p' .. ARGV[5])
  return { notify_dependents({ skipped, state }), 1 }
end
if left > 0 then
  call('HSET', stem .. 'blocked', id, left)
  call('HSET', stem .. 'runs', id, table.concat({ 'blocked', ARGV[4], now, 'p' .. ARGV[5] }, ' '))
  hold_job(id, run)
  release_groups({ run })
else
  release_groups({ run })
  hold_job(id, run)
  unblock_job(id, tonumber(attempt), tonumber(crashes), tonumber(priority), 0)
end
return { 0, 1 }
