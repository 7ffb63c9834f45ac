-- The queue of the script. KEYS[1] is its plain list of raw tasks, KEYS[2] the prefix of its companion keys (same slot);
-- ARGV[1] is the time in milliseconds, or '' for the server's clock. docs/redis-keys.md describes every key.

local list, stem = KEYS[1], KEYS[2]
local call = redis.call

local function clock()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local now = clock()
