-- record_history: adds activity to the current interval of each range, with the number of waiting and active entries now.
-- ARGV: now, activity as JSON, 1 for a queue that must exist, ms after which the history of an idle queue is dropped, then per range:
-- letter, step in ms, steps kept. Reply: 1, or 0 if there is no such queue any more.
-- include: counts
if ARGV[3] == '1' and call('EXISTS', stem .. 'meta') == 0 then return 0 end
local entries = counts()
local depth = entries[1] + entries[2] + entries[3] + entries[4]
local key, activity = stem .. 'history', cjson.decode(ARGV[2])

local function add_distribution(to, more)
  for bucket, count in pairs(more) do to[bucket] = (to[bucket] or 0) + count end
end

local function drop_old(letter, oldest)
  for _, field in ipairs(call('HKEYS', key)) do
    if string.sub(field, 1, 1) == letter and tonumber(string.sub(field, 2)) < oldest then call('HDEL', key, field) end
  end
end

for p = 5, #ARGV, 3 do
  local letter, interval = ARGV[p], math.floor(now / ARGV[p + 1])
  local field = letter .. string.format('%.0f', interval)
  local stored = call('HGET', key, field)
  local sum = stored and cjson.decode(stored) or { a = 0, d = 0, f = 0, x = 0, w = {}, r = {} }
  for _, name in ipairs({ 'a', 'd', 'f', 'x' }) do sum[name] = sum[name] + activity[name] end
  add_distribution(sum.w, activity.w)
  add_distribution(sum.r, activity.r)
  sum.n = depth
  if not stored then drop_old(letter, interval - ARGV[p + 2]) end
  call('HSET', key, field, cjson.encode(sum))
end
call('PEXPIRE', key, ARGV[4])
return 1
