-- record_progress: progress and log of a running job. ARGV: now, token, id ('' for a raw task, which stores neither),
-- progress ('' = none, else '=' and the text), log lines ('' = none), maximum bytes of log to keep.
-- Reply: 1, or 0 if the lease is gone.
-- include: allow_oom events task_batch tokens
allow_oom()
if ARGV[3] == '' then return find_task(ARGV[2]) and 1 or 0 end
local run = call('HGET', stem .. 'active', ARGV[3])
if not has_token(run, ARGV[2]) then return 0 end
if ARGV[4] ~= '' then
  call('HSET', stem .. 'notes', 'p' .. ARGV[3], string.sub(ARGV[4], 2))
  event('progress', ARGV[3], string.sub(ARGV[4], 2))
end
if ARGV[5] ~= '' then
  local log = (call('HGET', stem .. 'notes', 'l' .. ARGV[3]) or '') .. ARGV[5]
  call('HSET', stem .. 'notes', 'l' .. ARGV[3], string.sub(log, -tonumber(ARGV[6])))
end
return 1
