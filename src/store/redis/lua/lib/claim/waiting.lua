-- include: queue

-- The field `waiting` of `meta` names the worker that waits for a delivery: its last claim found nothing, and its process listens on a channel of its own. It is
-- `<worker>\0<entries it has room for>\0<nonce of its claim>\0<channel>`.

local function wait_for_delivery(worker, room, nonce, channel)
  call('HSET', stem .. 'meta', 'hungry', '1', 'waiting', worker .. '\0' .. room .. '\0' .. nonce .. '\0' .. channel)
end

-- A worker that claims again, or leaves, has said anew whether it waits.
local function stop_waiting(worker, waiting)
  if waiting and string.sub(waiting, 1, #worker + 1) == worker .. '\0' then call('HDEL', stem .. 'meta', 'waiting') end
end
