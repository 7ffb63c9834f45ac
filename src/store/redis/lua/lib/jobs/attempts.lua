-- include: queue

-- Adds a line to the history of a job's attempts, of which the last 64 KiB are kept.
local function append_attempt(id, line)
  local text = (call('HGET', stem .. 'notes', 'a' .. id) or '') .. line
  call('HSET', stem .. 'notes', 'a' .. id, string.sub(text, -65536))
end

-- The beginning of the tail of a done job: the run it had while it was active, which names its start and its worker.
local function started(run) return '@' .. run .. '\0\0' end
