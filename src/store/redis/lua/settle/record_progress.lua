-- record_progress: progress and log of a running job. ARGV: now, token, id ('' for a raw task, which stores neither),
-- progress ('' = none, else '=' and the text), the same as one short line, log lines ('' = none), maximum bytes of log to keep.
-- Reply: 1, or 0 if the lease is gone.
-- include: allow_oom events task_batch tokens
allow_oom()
if ARGV[3] == '' then return find_task(ARGV[2]) and 1 or 0 end
local run = call('HGET', stem .. 'active', ARGV[3])
if not has_token(run, ARGV[2]) then return 0 end
local notes, id = stem .. 'notes', ARGV[3]

-- Appends lines with the time in front of each, as job/timed-lines.ts says; the beginning is cut off when it grows too long.
local function append(field, lines, most)
  local time = string.format('\31%.0f\31', now)
  local timed = time .. string.gsub(string.sub(lines, 1, -2), '\n', '\n' .. time) .. string.sub(lines, -1)
  return string.sub((call('HGET', notes, field) or '') .. timed, -most)
end

if ARGV[4] ~= '' then
  local progress = string.sub(ARGV[4], 2)
  call('HSET', notes, 'p' .. id, progress, 's' .. id, append('s' .. id, ARGV[5], 4096))
  event('progress', id, progress)
end
if ARGV[6] ~= '' then call('HSET', notes, 'l' .. id, append('l' .. id, ARGV[6], tonumber(ARGV[7]))) end
return 1
