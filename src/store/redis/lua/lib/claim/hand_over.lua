-- include: plain_session

-- Entries for a worker that waits at an empty queue are leased as soon as they arrive. Scripts that do this run rarely, while somebody waits for them, so they have
-- few functions of their own: creating those of a claim took them an eighth to a quarter of their time.

-- The session of such a worker, as `plain_session` returns it; nothing if other entries wait or somebody listens to events.
local function waiting_session(worker)
  local deadline, hungry, waiting, watched_until = plain_session(worker)
  if not deadline or watched_until > now then return end
  local waits = call('EXISTS', list, stem .. 'ready', stem .. 'runs', stem .. 'prio', stem .. 'ghosts', stem .. 'scheduled', stem .. 'seals')
  if waits == 0 then return deadline, hungry, waiting end
end

-- Renews the session, and sees to it that the next add that does not find it waiting wakes the workers.
local function keep_waiting(worker, deadline, hungry, waiting)
  renew_session(worker, deadline, ARGV[5])
  if waiting and string.sub(waiting, 1, #worker + 1) == worker .. '\0' then call('HDEL', stem .. 'meta', 'waiting') end
  if not hungry then call('HSET', stem .. 'meta', 'hungry', '1') end
end

-- Stores and leases jobs: a list of id, record, id, record …
local function lease_new_jobs(jobs, first, worker, nonce)
  local leases, head, tail = {}, '1.' .. first .. '-', '.' .. nonce .. ' 0 0 ' .. now .. ' ' .. worker
  for i = 1, #jobs, 2 do leases[i], leases[i + 1] = jobs[i], head .. string.format('%03d', (i - 1) / 2) .. tail end
  call('HSET', stem .. 'jobs', unpack(jobs))
  call('HSET', stem .. 'active', unpack(leases))
end

-- Leases a raw task in a field of its own: see task_batch.lua.
local function lease_new_task(task, first, worker, nonce)
  call('HSET', stem .. 'leased', '1.' .. first .. '-000.' .. nonce, worker .. '\0' .. task)
end

-- The first of the next numbers of entries.
local function take_numbers(n) return call('HINCRBY', stem .. 'meta', 'seq', n) - n + 1 end
