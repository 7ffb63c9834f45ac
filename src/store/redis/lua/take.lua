-- take: up to n raw tasks, at most a thousand, for a session that is alive. As good as a beat.
-- ARGV: now, session, n, nonce, lease in ms.
-- Reply: status (ok, paused, lost), first claim sequence, packed list of tasks. Tokens are as those of claim.
local worker = ARGV[2]
call('LLEN', list)
allow_oom()
local deadline = call('ZSCORE', stem .. 'workers', worker)
if not deadline or tonumber(deadline) < 0 then return { 'lost' } end
call('ZADD', stem .. 'workers', 'XX', 'GT', now + ARGV[5], worker)
if call('HEXISTS', stem .. 'meta', 'paused') == 1 then return { 'paused' } end

-- What the pace of the queue leaves.
local most, rule = tonumber(ARGV[3]), get_pace()
local rate_start, rate_count
if rule and rule.most > 0 then
  most = math.min(most, rule.most - (call('HLEN', stem .. 'active') - 1 + call('HLEN', stem .. 'leased')))
end
if rule and rule.count > 0 then
  rate_start, rate_count = window(call('HGET', stem .. 'rates', ''), rule.per)
  most = math.min(most, rule.count - rate_count)
end

local tasks = most > 0 and call('RPOP', list, most) or {}
local n = #tasks
if rate_start and n > 0 then call('HSET', stem .. 'rates', '', rate_start .. ' ' .. (rate_count + n)) end
if n < tonumber(ARGV[3]) or call('EXISTS', list) == 0 then call('HSET', stem .. 'meta', 'hungry', 1) end
if n == 0 then return { 'ok' } end

local first = call('HINCRBY', stem .. 'meta', 'seq', n) - n + 1
local head, tail, owner = '1.' .. first .. '-', '.' .. ARGV[4], worker .. '\0'
local ends = {}
for ones = 0, 9 do ends[ones] = ones .. tail end
local leased, bytes, prefix = {}, 0, nil
for i = 1, n do
  local ones = (i - 1) % 10
  -- ten tokens differ in their last digit only: rendering a number is dear
  if ones == 0 then prefix = head .. string.format('%02d', (i - 1) / 10) end
  leased[2 * i - 1] = prefix .. ends[ones]
  leased[2 * i] = owner .. tasks[i]
  bytes = bytes + #tasks[i]
end
call('HSET', stem .. 'leased', unpack(leased))
seal(leased)
weigh(-bytes)
return { 'ok', first, cmsgpack.pack(tasks) }
