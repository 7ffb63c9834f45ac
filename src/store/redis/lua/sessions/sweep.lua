-- sweep: periodic maintenance of a queue.
-- ARGV: now, lease in ms, sweep interval in ms, ms for which recent jobs are kept, how many of them.
-- Reply: if another process has just swept, for how many ms no sweep is needed (0: the usual ones are); else: the same, more (0 or 1), outbox (1 if it has messages, 2 more if jobs are being moved), dependencies (0 or 1), unused (0 or 1),
-- kept records (0 or 1), dead jobs dropped so far, number of dead workers, their ids…, ids of jobs whose reservation ended…
-- include: allow_oom kept_records promote quiet runs unused wake
allow_oom()
local lease, every = tonumber(ARGV[2]), tonumber(ARGV[3])
local swept = tonumber(call('HGET', stem .. 'meta', 'swept'))
-- after the clock was set back, sweeps must not stop until it has caught up
if swept and every > 0 and now >= swept and now - swept < every then return quiet_for() end
call('HSET', stem .. 'meta', 'swept', now)

local more = promote_due(1000) == 1000 and 1 or 0
for _, state in ipairs({ 'done', 'dead', 'cancelled' }) do
  local old = call('ZRANGEBYSCORE', stem .. state, '-inf', now, 'LIMIT', 0, 1000)
  if #old > 0 then
    call('ZREM', stem .. state, unpack(old))
    drop_ended(old)
    if #old == 1000 then more = 1 end
  end
end
local function forget_recent()
  if drop_recent(tonumber(ARGV[5]), 1000) == 1000 then more = 1 end
  local old = call('LRANGE', stem .. 'recent', -100, -1)
  local gone = {}
  for i = #old, 1, -1 do
    local _, _, _, _, at = parse_run(call('HGET', stem .. 'ended', old[i]))
    if at + ARGV[4] > now then break end
    gone[#gone + 1] = old[i]
  end
  if #gone == 0 then return end
  call('RPOP', stem .. 'recent', #gone)
  drop_ended(gone)
  if #gone == 100 then more = 1 end
end
forget_recent()
local keys = call('ZRANGEBYSCORE', stem .. 'unique_ttl', '-inf', now, 'LIMIT', 0, 1000)
if #keys > 0 then
  call('HDEL', stem .. 'unique', unpack(keys))
  call('ZREM', stem .. 'unique_ttl', unpack(keys))
end

local forgotten = call('ZRANGEBYSCORE', stem .. 'fates_ttl', '-inf', now, 'LIMIT', 0, 1000)
if #forgotten > 0 then
  call('HDEL', stem .. 'fates', unpack(forgotten))
  call('ZREM', stem .. 'fates_ttl', unpack(forgotten))
end

local taken = call('ZRANGEBYSCORE', stem .. 'ids', '-inf', now, 'LIMIT', 0, 1000)
if #taken > 0 then call('ZREM', stem .. 'ids', unpack(taken)) end
local waited = call('ZRANGEBYSCORE', stem .. 'kept_ttl', '-inf', now, 'LIMIT', 0, 1000)
if #waited > 0 then
  call('ZREM', stem .. 'kept_ttl', unpack(waited))
  for _, id in ipairs(waited) do release_record(id, '@') end
end
if #taken == 1000 or #waited == 1000 then more = 1 end

-- A session that was declared dead stays dead until it holds nothing: a late heartbeat does not revive it.
local expired = call('ZRANGEBYSCORE', stem .. 'workers', -1, -1, 'LIMIT', 0, 100)
local dead = call('ZRANGEBYSCORE', stem .. 'workers', 0, now, 'LIMIT', 0, 100)
local late = call('ZRANGEBYSCORE', stem .. 'reserved', '-inf', now, 'LIMIT', 0, 500)
if swept and now - swept > lease then
  -- No sweep for a whole lease: the server was down or no worker was running, so no heartbeat could arrive. Grant a lease.
  for _, worker in ipairs(dead) do call('ZADD', stem .. 'workers', now + lease, worker) end
  for _, id in ipairs(late) do call('ZADD', stem .. 'reserved', now + lease, id) end
  dead, late = {}, {}
end
if swept and swept - now > lease then
  -- The clock was set back by more than a lease: sessions without heartbeats must not outlive the difference.
  for _, worker in ipairs(call('ZRANGEBYSCORE', stem .. 'workers', '(' .. swept, '+inf', 'LIMIT', 0, 10000)) do
    call('ZADD', stem .. 'workers', now + lease, worker)
  end
end
for _, worker in ipairs(dead) do
  call('ZADD', stem .. 'workers', -1, worker)
  expired[#expired + 1] = worker
end
dead = expired
if call('EXISTS', list, stem .. 'ready', stem .. 'prio', stem .. 'turns', stem .. 'reopen') > 0 then wake() end
local arrived = call('ZRANGEBYSCORE', stem .. 'arrived', '-inf', now, 'LIMIT', 0, 1000)
if #arrived > 0 then call('ZREM', stem .. 'arrived', unpack(arrived)) end
local reply = { #dead + #late > 0 and 0 or quiet_for(), more, call('EXISTS', stem .. 'outbox') + 2 * call('EXISTS', stem .. 'moving'), call('EXISTS', stem .. 'edges'), is_unused() and 1 or 0,
  call('EXISTS', stem .. 'kept_by'), tonumber(call('HGET', stem .. 'meta', 'dropped')) or 0, #dead }
for _, worker in ipairs(dead) do reply[#reply + 1] = worker end
for _, id in ipairs(late) do reply[#reply + 1] = id end
return reply
