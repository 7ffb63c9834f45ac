-- claim: up to n entries for a worker whose session is alive.
-- ARGV: now, worker, n, nonce, lease in ms, channel on which the worker's process listens for deliveries ('' = it does not).
-- Reply: status (ok, paused, lost), more (0 or 1), time of the next scheduled job or '', now, first claim sequence, and
-- packed lists: ids ('' for a raw task), bodies (record or task), runs before the claim ('' for a new job; empty list if
-- all are new). If all are raw tasks, instead of these lists: size of the task batches, packed list of the tasks of each batch, or of all.
-- The token of the k-th entry is '<attempt>.<first>-<k, three digits from 000>.<nonce>', with the number of tasks in its batch in place
-- of the attempt if all are raw tasks. A claim also renews the session.
-- first: claim_plain
-- include: allow_oom breaker waiting limits leased_count promote claim_priorities claim_groups claim_ready claim_leases lease_tasks started_events bytes wake
local worker, n, nonce = ARGV[2], tonumber(ARGV[3]), ARGV[4]
-- A key of the wrong type must fail here, before anything is written.
call('LLEN', list)
allow_oom()
local deadline = call('ZSCORE', stem .. 'workers', worker)
if not deadline or tonumber(deadline) < 0 then return { 'lost', 0, '', now, 0 } end
call('ZADD', stem .. 'workers', 'XX', 'GT', now + ARGV[5], worker)
local paused, hungry, waiting = unpack(call('HMGET', stem .. 'meta', 'paused', 'hungry', 'waiting'))
stop_waiting(worker, waiting)
if paused then return { 'paused', 0, '', now, 0 } end
-- An open breaker lets nothing through until its time comes, and then one entry.
local gate = get_breaker()
if gate and gate.till > now then return { 'paused', 0, string.format('%.0f', gate.till), now, 0 } end
local single = gate and gate.till > 0
if single then n = math.min(n, 1) end
promote_due(1000)

-- 1. How much of the request the limits of the queue allow, and when they allow more.
local asked, opens = n, nil
local rule = get_limits()
if rule and rule.most > 0 then
  n = math.min(n, rule.most - (call('HLEN', stem .. 'active') - 1 + count_leased()))
end
local rate_start, rate_count
if rule and rule.count > 0 then
  rate_start, rate_count = rate_window(call('HGET', stem .. 'rates', ''), rule.per)
  if rule.count - rate_count <= n then opens = rate_start + rule.per end
  n = math.min(n, rule.count - rate_count)
end
n = math.max(n, 0)
local bound, most = n < asked, n

-- 2. Take entries: high priorities, groups in turn, raw tasks and plain jobs alternately, low priorities.
local prioritised = call('ZCARD', stem .. 'prio') > 0
if prioritised then take_priorities(n, '-inf', '(0') end
local tasks = {}
local want = n - #ids
local raw, refs = call('LLEN', list), call('LLEN', stem .. 'ready') - count_cancelled()
-- The kinds share the request equally; if it is odd, they alternate in getting the larger half. With three kinds there
-- are two such alternations.
local function half(whole, turns)
  if whole % 2 == 0 then return whole / 2 end
  return (whole - 1) / 2 + math.floor((tonumber(call('HGET', stem .. 'meta', 'seq')) or 0) / turns) % 2
end
local turns = 1
if grouped() then
  if (tonumber(call('HGET', stem .. 'meta', 'grouped')) or 0) > 0 then turns = 2 end
  reopen_groups()
  local had = #ids
  local wanted = want > 0 and math.max(half(want, 1), want - raw - refs) or 0
  for _ = 1, 10 do
    if wanted <= 0 then break end
    wanted = take_groups(wanted, rule)
  end
  if #ids > had then call('HINCRBY', stem .. 'meta', 'grouped', had - #ids) end
  want = n - #ids
end
local before = #ids
if want > 0 then
  if raw > 0 then
    local share = math.min(raw, math.max(half(want, turns), want - refs))
    if share > 0 then tasks = call('RPOP', list, share) end
    refs = math.min(refs, want - share)
  end
  take_ready(math.min(refs, want))
end
local middle = #ids
if prioritised then take_priorities(n - #tasks - #ids, '(0', '+inf') end

local records = #ids > 0 and call('HMGET', stem .. 'jobs', unpack(ids)) or {}
local tried = #ids > 0 and call('EXISTS', stem .. 'runs') == 1
local runs = tried and call('HMGET', stem .. 'runs', unpack(ids)) or {}
local total = #ids + #tasks

-- 3. Whether more entries are ready, and when the next one is due.
if grouped() then drop_empty_groups() end
local more = call('EXISTS', list, stem .. 'ready', stem .. 'prio', stem .. 'turns') > 0 and 1 or 0
if more == 1 and drop_cancelled() and call('EXISTS', list, stem .. 'prio', stem .. 'turns') == 0 then more = 0 end
local next_at = call('ZRANGE', stem .. 'scheduled', 0, 0, 'WITHSCORES')[2] or ''
local function sooner(at) if at and (next_at == '' or tonumber(at) < tonumber(next_at)) then next_at = tostring(at) end end
if rate_start and total > 0 then call('HSET', stem .. 'rates', '', rate_start .. ' ' .. (rate_count + total)) end
-- At a limit of the queue nothing more can be claimed for now, whatever waits.
if more == 1 and total == most and (bound or opens) then
  more = 0
  sooner(opens)
end
if grouped() then sooner(call('ZRANGE', stem .. 'rested', 0, 0, 'WITHSCORES')[2]) end
-- No signal was sent for these entries: another program pushed them, or they have just become due. Whoever sweeps must know that they are leased.
if hungry and total > 0 then wake() end
-- The next add wakes the workers.
if more == 0 then call('HSET', stem .. 'meta', 'hungry', 1) end
if total == 0 then return { 'ok', more, next_at, now, 0 } end

-- 4. Create the leases.
has_reservations = call('HEXISTS', stem .. 'meta', 'minds') == 1
local first = call('HINCRBY', stem .. 'meta', 'seq', total) - total + 1
if single then
  gate.till, gate.trial = now + gate.pause, first .. '-000.' .. nonce
  save_breaker()
  more, next_at = 0, string.format('%.0f', gate.till)
end
if #ids == 0 then
  local bytes = size_of(tasks)
  local size, packs = lease_tasks(tasks, bytes, first, worker, nonce)
  add_bytes(-bytes)
  return { 'ok', more, next_at, now, first, size, unpack(packs) }
end
local head, tail = '.' .. first .. '-', '.' .. nonce
local ends = {
  index = 0, worker = worker, head = head, tail = tail,
  fresh_head = '1' .. head, fresh_tail = tail .. ' 0 0 ' .. now .. ' ' .. worker,
}
local leased, bytes = {}, 0
local out_ids, out_bodies, out_runs = {}, {}, {}
if #tasks == 0 and not tried then
  out_ids, out_bodies = ids, records
  lease_fresh(records, ends)
else
  local i, t, o = 1, 1, 0
  while i <= #ids or t <= #tasks do
    o = o + 1
    -- raw tasks come in the middle, alternating with jobs of default priority
    if i <= #ids and (i <= before or t > #tasks or (i <= middle and i - before <= t - 1)) then
      out_ids[o], out_bodies[o], out_runs[o] = ids[i], records[i], runs[i] or ''
      lease_job(i, records[i], runs[i], groups[i] or '', ends)
      i = i + 1
    else
      leased[#leased + 1] = ends.fresh_head .. digits(ends.index) .. tail
      leased[#leased + 1] = worker .. '\0' .. tasks[t]
      ends.index = ends.index + 1
      out_ids[o], out_bodies[o], out_runs[o] = '', tasks[t], ''
      bytes = bytes + #tasks[t]
      t = t + 1
    end
  end
end
if lease_count > 0 then call('HSET', stem .. 'active', unpack(lease_fields)) end
if #reserved_fields > 0 then call('ZADD', stem .. 'reserved', unpack(reserved_fields)) end
if #leased > 0 then
  call('HSET', stem .. 'leased', unpack(leased))
  lease_unique_locks(tasks, function(i) return leased[2 * i - 1] end)
end
tell_started(ids, runs)
if #with_runs > 0 then call('HDEL', stem .. 'runs', unpack(with_runs)) end
add_bytes(-bytes - leased_bytes)
local pack = cmsgpack.pack
return { 'ok', more, next_at, now, first, pack(out_ids), pack(out_bodies), pack(out_runs) }
