-- settle: applies outcomes to leased entries whose token still matches.
-- ARGV: now, then per entry: worker, token, id ('' for a raw task), move (done, dead, cancelled, scheduled, ready, raw),
--   'attempt crashes priority', tail (result or error), number (keep-ms or delay), keep-count, unique key to free,
--   record to create for a raw task that becomes a job, ms for which the id stays taken, line for the history of attempts.
-- Reply: outbox flag, then per entry 1 or 0. A list key of the wrong type fails before anything is written.
-- include: allow_oom attempts breaker bytes close_jobs dependencies enqueue_job events release_groups task_batch tokens unique_keys unique_tasks wake
call('LLEN', list)
allow_oom()
local reply, n = { 0 }, (#ARGV - 1) / 12
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

local function final() return { ids = {}, runs = {}, keeps = {}, windows = {}, count = 0 } end
local ends = { done = final(), dead = final(), cancelled = final() }
local fronts, ended, bytes, stir, raw = {}, {}, 0, false, 0
for i = 1, n do
  local p = 12 * i - 10
  local id, move, head, tail = ARGV[p + 2], ARGV[p + 3], ARGV[p + 4], ARGV[p + 5]
  local entry = unlease(p)
  reply[i + 1] = entry and 1 or 0
  if entry then
    if move == 'done' then
      count_success(ARGV[p + 1])
    elseif move == 'dead' or (move == 'scheduled' and tail ~= '') then
      count_failure(ARGV[p + 1])
    end
    if ARGV[p + 9] ~= '' then call('HSET', stem .. 'jobs', id, ARGV[p + 9]) end
    if id ~= '' and ARGV[p + 11] ~= '' then append_attempt(id, ARGV[p + 11]) end
    local group = ends[move]
    -- an entry that returns with an error was lost or has failed; without one it was snoozed or released
    local later = move == 'scheduled' and (tail == '' and 'snoozed' or 'retry')
    if id ~= '' then event(later or (group and move) or (tail == '' and 'released' or 'lost'), id, move ~= 'done' and (string.gsub(tail, '^\1', ''))) end
    if group and id ~= '' then
      local k = #group.ids + 1
      group.ids[k], group.runs[k] = id, move .. ' ' .. head .. ' ' .. now .. ' ' .. (move == 'done' and entry == true and started(freed[#freed]) or '') .. tail
      -- a job that is not kept must not evict others, and the largest count of the batch applies
      local most = tonumber(ARGV[p + 7])
      group.keeps[k], group.count = most > 0 and tonumber(ARGV[p + 6]) or 0, math.max(group.count, most)
      group.windows[k] = tonumber(ARGV[p + 10])
      ended[#ended + 1] = id
      ended[#ended + 1] = move
      if ARGV[p + 8] ~= '' then free_unique_key(ARGV[p + 8], id) end
    elseif move == 'scheduled' then
      local at = now + ARGV[p + 6]
      if entry == true then hold_job(id, freed[#freed]) end
      call('ZADD', stem .. 'scheduled', at, id)
      call('HSET', stem .. 'runs', id, 'scheduled ' .. head .. ' ' .. at .. ' ' .. tail)
      bytes = bytes + call('HSTRLEN', stem .. 'jobs', id)
      stir = true
    elseif not group then
      fronts[#fronts + 1] = { claim_sequence(ARGV[p + 1]), p, entry, entry == true and freed[#freed] }
    end
  end
end

tell_breaker()
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
    if front[4] then hold_job(id, front[4]) end
    enqueue_job(id, tonumber(attempt), tonumber(crashes), tonumber(priority), ARGV[p + 5], true)
    bytes = bytes + call('HSTRLEN', stem .. 'jobs', id)
  end
  stir = true
end

for state, group in pairs(ends) do close_jobs(state, group.ids, group.runs, group.keeps, group.count, group.windows) end
if #ended > 0 then reply[1] = notify_dependents(ended) end
add_bytes(bytes)
if raw > 0 then call('PUBLISH', stem .. 'news', 'w' .. raw) end
if stir then wake(raw > 0) end
return reply
