-- include: hand_over

-- The worker of another process that waits and may have `n` entries as soon as they arrive, if the queue needs nothing else.
local function waiting_worker(waiting, n)
  local worker, room, nonce, channel = string.match(waiting, '^([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)$')
  if n > tonumber(room) then return end
  local deadline = waiting_session(worker)
  if deadline and deadline > now then return worker, nonce, channel end
end

-- Sends entries to its process, packed jobs or a task. Returns whether that process still listens: if not, nothing may be leased to it.
local function deliver(worker, nonce, channel, first, kind, entries)
  call('HDEL', stem .. 'meta', 'waiting')
  local times = string.format('%.0f %.0f', now, first)
  return call('PUBLISH', channel, cmsgpack.pack({ stem .. 'signals', worker, nonce, times, kind, entries })) > 0
end
