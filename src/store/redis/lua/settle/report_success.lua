-- report_success: success without a token, for active jobs and for jobs that wait for a retry without a report since their
-- delivery.
-- ARGV: now, then per job: id, keep-ms, keep-count, unique key to free, ms for which the id stays taken.
-- Reply: outbox flag, then per job 1 or 0.
-- include: allow_oom breaker close_jobs dependencies dequeue_job events runs unique_keys
allow_oom()

-- Whether a report still counts: the job is running, or waits for a retry and no report answered its delivery (shown by
-- its tail).
local function matters(state, run)
  if state == 'active' then return true end
  if not run or (state ~= 'scheduled' and state ~= 'ready') then return false end
  local _, attempt, _, _, _, tail = parse_run(run)
  return attempt > 0 and string.byte(tail) ~= 1
end

local reply, ended = { 0 }, {}
for p = 2, #ARGV, 5 do
  local id = ARGV[p]
  local state, run = find_job(id)
  local known = call('HEXISTS', stem .. 'jobs', id) == 1
  local counts, token
  if known and matters(state, run) then counts, token = dequeue_job(id, state, run) end
  reply[#reply + 1] = counts and 1 or 0
  if counts then
    count_success(token or '')
    if ARGV[p + 3] ~= '' then free_unique_key(ARGV[p + 3], id) end
    event('done', id)
    close_jobs('done', { id }, { 'done ' .. counts .. ' ' .. now .. ' ' }, { tonumber(ARGV[p + 1]) }, tonumber(ARGV[p + 2]), { tonumber(ARGV[p + 4]) })
    ended[#ended + 1] = id
    ended[#ended + 1] = 'done'
  end
end
tell_breaker()
if #ended > 0 then reply[1] = notify_dependents(ended) end
return reply
