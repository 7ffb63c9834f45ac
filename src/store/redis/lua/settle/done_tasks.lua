-- done_tasks: settle, for raw tasks that are done. ARGV: now, packed list of tokens.
-- Reply: 0, then the indexes of tasks no longer held.
-- include: allow_oom breaker limits task_batch unique_tasks wake
allow_oom()
local reply = { 0 }
local sealing = call('EXISTS', stem .. 'sealed') == 1
for i, token in ipairs(cmsgpack.unpack(ARGV[2])) do
  local task = end_task(token)
  if not task then reply[#reply + 1] = i elseif sealing then end_unique_lock(token, task, false) end
  if task then count_success(token) end
end
tell_breaker()
if get_limits() then wake() end
return reply
