/**
 * KEYS[1] the list. ARGV: prefix of the lock names, token, expiry in ms, first index, number of items. Reply: {length,
 * index after the last item examined, the item whose lock was set, if any}.
 *
 * It reads before it moves: a range of locked items costs one LRANGE and one MGET and no write at all, and a full pass
 * without a free item leaves the ring unchanged. Moving each item separately would take twice the server time and write
 * every step of an idle ring to the append-only file. Ranges grow, since the first item is usually free.
 */
export const TAKE = `
local length = redis.call('LLEN', KEYS[1])
local at = tonumber(ARGV[4])
local stop = math.min(length, at + tonumber(ARGV[5]))
local size = 4

local function rotate(count)
  while count > 0 and count < length do
    local some = redis.call('LRANGE', KEYS[1], 0, math.min(count, 1000) - 1)
    redis.call('RPUSH', KEYS[1], unpack(some))
    redis.call('LTRIM', KEYS[1], #some, -1)
    count = count - #some
  end
end

while at < stop do
  local items = redis.call('LRANGE', KEYS[1], at, math.min(at + size, stop) - 1)
  local locks = {}
  for i, item in ipairs(items) do locks[i] = ARGV[1] .. item end
  local owners = redis.call('MGET', unpack(locks))
  for i, item in ipairs(items) do
    if not owners[i] and redis.call('SET', locks[i], ARGV[2], 'NX', 'PX', ARGV[3]) then
      rotate(at + i)
      return {length, at + i, item}
    end
  end
  at = at + #items
  size = math.min(size * 8, 1000)
end
return {length, at}
`;

/** KEYS the locks. ARGV: expiry in ms, then one token per lock. Reply per lock: 1 extended, 0 gone, -1 held by another. */
export const REFRESH = `
local states = {}
for i, lock in ipairs(KEYS) do
  local owner = redis.pcall('GET', lock)
  if owner == ARGV[i + 1] then
    redis.call('PEXPIRE', lock, ARGV[1])
    states[i] = 1
  else
    states[i] = owner and -1 or 0
  end
end
return states
`;

/** KEYS[1] the lock. ARGV: token, ms the lock remains (0: delete it). Reply: 1 done, 0 held by another. */
export const RELEASE = `
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then return redis.call('DEL', KEYS[1]) end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

/**
 * KEYS[1] the registry of rings, a sorted set. ARGV: now, the ring as JSON [list, start of lock names], the time before
 * which rings are dropped, the most that are kept.
 */
export const REGISTER = `
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[3])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[4])
`;
