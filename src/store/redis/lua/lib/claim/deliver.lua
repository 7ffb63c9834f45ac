-- include: plain_session nothing_waits

-- The worker of another process that waits and may have `n` entries as soon as they arrive, if the queue needs nothing else.
local function waiting_worker(n)
  local waiting = call('HGET', stem .. 'meta', 'waiting')
  if not waiting then return end
  local worker, room, nonce, channel = string.match(waiting, '^([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)$')
  if n > tonumber(room) then return end
  local deadline = plain_session(worker)
  if not deadline or deadline <= now or not nothing_waits() then return end
  return { worker = worker, nonce = nonce, channel = channel }
end

-- Sends entries to its process, in the parts of a claim's reply. Returns whether that process still listens: if not, nothing may be leased to it.
local function deliver(to, first, parts)
  call('HDEL', stem .. 'meta', 'waiting')
  local head = { stem .. 'signals', to.worker, to.nonce, string.format('%.0f', now), string.format('%.0f', first) }
  for i, part in ipairs(parts) do head[#head + 1] = part end
  return call('PUBLISH', to.channel, cmsgpack.pack(head)) > 0
end
