-- settle: applies outcomes to leased entries whose token still matches.
-- ARGV: now, then per entry: worker, token, id ('' for a raw task), move (done, dead, cancelled, scheduled, ready, raw),
--   'attempt crashes priority', tail (result or error), number (keep-ms or delay), keep-count, unique key to free,
--   record to create for a raw task that becomes a job.
-- Reply: outbox flag, then per entry 1 or 0. A list key of the wrong type fails before anything is written.
-- include: allow_oom bytes close_jobs dependencies enqueue_job events release_groups task_batch tokens unique_keys unique_tasks wake
call('LLEN', list)
allow_oom()
local reply, n = { 0 }, (#ARGV - 1) / 10
local sealing = call('EXISTS', stem .. 'sealed') == 1

local freed = {}
-- Ends the lease of an entry; returns the task's bytes, true for a job, or nil if the token no longer matches.
local function unlease(p)
  local token, id = ARGV[p + 1], ARGV[p + 2]
  if id == '' or ARGV[p + 9] ~= '' then
    local task = end_task(token)
    if task and sealing then end_unique_lock(token, task, ARGV[p + 3] == 'raw') end
    return task
  end
  local run = call('HGET', stem .. 'active', id)
  if not has_token(run, token) then return nil end
  call('HDEL', stem .. 'active', id)
  call('ZREM', stem .. 'reserved', id)
  freed[#freed + 1] = run
  return true
end

local ends = { done = { {}, {}, {}, 0 }, dead = { {}, {}, {}, 0 }, cancelled = { {}, {}, {}, 0 } }
local fronts, told, bytes, stir, raw = {}, {}, 0, false, 0
for i = 1, n do
  local p = 10 * i - 8
  local id, move, head, tail = ARGV[p + 2], ARGV[p + 3], ARGV[p + 4], ARGV[p + 5]
  local entry = unlease(p)
  reply[i + 1] = entry and 1 or 0
  if entry then
    if ARGV[p + 9] ~= '' then call('HSET', stem .. 'jobs', id, ARGV[p + 9]) end
    local group = ends[move]
    -- an entry that returns with an error was lost or has failed; without one it was snoozed or released
    local later = move == 'scheduled' and (tail == '' and 'snoozed' or 'retry')
    if id ~= '' then event(later or (group and move) or (tail == '' and 'released' or 'lost'), id, move ~= 'done' and (string.gsub(tail, '^\1', ''))) end
    if group and id ~= '' then
      local k = #group[1] + 1
      group[1][k], group[2][k] = id, move .. ' ' .. head .. ' ' .. now .. ' ' .. tail
      -- a job that is not kept must not evict others, and the largest count of the batch applies
      local most = tonumber(ARGV[p + 7])
      group[3][k], group[4] = most > 0 and tonumber(ARGV[p + 6]) or 0, math.max(group[4], most)
      told[#told + 1] = id
      told[#told + 1] = move
      if ARGV[p + 8] ~= '' then free_unique_key(ARGV[p + 8], id) end
    elseif move == 'scheduled' then
      local at = now + ARGV[p + 6]
      call('ZADD', stem .. 'scheduled', at, id)
      call('HSET', stem .. 'runs', id, 'scheduled ' .. head .. ' ' .. at .. ' ' .. tail)
      bytes = bytes + call('HSTRLEN', stem .. 'jobs', id)
      stir = true
    elseif not group then
      fronts[#fronts + 1] = { claim_sequence(ARGV[p + 1]), p, entry }
    end
  end
end

release_groups(freed)
-- Entries returned to the front keep their order: the lowest claim sequence is pushed last and comes first.
table.sort(fronts, function(a, b) return a[1] > b[1] end)
for _, front in ipairs(fronts) do
  local p, id = front[2], ARGV[front[2] + 2]
  if ARGV[p + 3] == 'raw' then
    call('RPUSH', list, front[3])
    raw = raw + 1
    bytes = bytes + #front[3]
  else
    local attempt, crashes, priority = string.match(ARGV[p + 4], '^(%d+) (%d+) (%-?%d+)$')
    enqueue_job(id, tonumber(attempt), tonumber(crashes), tonumber(priority), ARGV[p + 5], true)
    bytes = bytes + call('HSTRLEN', stem .. 'jobs', id)
  end
  stir = true
end

for state, group in pairs(ends) do close_jobs(state, group[1], group[2], group[3], group[4]) end
if #told > 0 then reply[1] = tell_dependents(told) end
add_bytes(bytes)
if raw > 0 then call('PUBLISH', stem .. 'news', 'w' .. raw) end
if stir then wake(raw > 0) end
return reply
