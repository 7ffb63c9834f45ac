-- Notifies workers of the original Worqr, which use channels of their own; '' if there can be none. The Redis account may
-- lack access to the channel.
local function notify_original(channel, message)
  if channel ~= '' then redis.pcall('PUBLISH', channel, message) end
end
