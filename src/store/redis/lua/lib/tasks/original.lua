-- Tells workers of the original Worqr, which listen to channels of their own; ''  where nobody can. An account may lack the channel.
local function tell_original(channel, message)
  if channel ~= '' then redis.pcall('PUBLISH', channel, message) end
end
