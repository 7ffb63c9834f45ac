-- claim_tasks: up to n raw tasks, at most a thousand, for a session that is alive. A claim also renews the session.
-- ARGV: now, session, n, nonce, lease in ms.
-- Reply: status (ok, paused, lost), first claim sequence, size of the task batches (50, or 1: each task has its own field),
-- packed list of the tasks of each batch, or of all. Tokens are as those of claim, with the number of tasks in the batch in
-- place of an attempt.
-- include: allow_oom bytes leased_count limits lease_tasks wake
local worker = ARGV[2]
call('LLEN', list)
allow_oom()
local deadline = call('ZSCORE', stem .. 'workers', worker)
if not deadline or tonumber(deadline) < 0 then return { 'lost' } end
call('ZADD', stem .. 'workers', 'XX', 'GT', now + ARGV[5], worker)
local paused, hungry = unpack(call('HMGET', stem .. 'meta', 'paused', 'hungry'))
if paused then return { 'paused' } end

-- How many the limits of the queue allow.
local most, rule = tonumber(ARGV[3]), get_limits()
local rate_start, rate_count
if rule and rule.most > 0 then
  most = math.min(most, rule.most - (call('HLEN', stem .. 'active') - 1 + count_leased()))
end
if rule and rule.count > 0 then
  rate_start, rate_count = rate_window(call('HGET', stem .. 'rates', ''), rule.per)
  most = math.min(most, rule.count - rate_count)
end

local tasks = most > 0 and call('RPOP', list, most) or {}
local n = #tasks
if rate_start and n > 0 then call('HSET', stem .. 'rates', '', rate_start .. ' ' .. (rate_count + n)) end
-- As in claim: whoever sweeps must know that something is leased.
if hungry and n > 0 then wake(true) end
if n < tonumber(ARGV[3]) or call('EXISTS', list) == 0 then call('HSET', stem .. 'meta', 'hungry', 1) end
if n == 0 then return { 'ok' } end

local first = call('HINCRBY', stem .. 'meta', 'seq', n) - n + 1
local bytes = size_of(tasks)
local size, packs = lease_tasks(tasks, bytes, first, worker, ARGV[4])
local reply = { 'ok', first, size }
for i, packed in ipairs(packs) do reply[3 + i] = packed end
add_bytes(-bytes)
return reply
