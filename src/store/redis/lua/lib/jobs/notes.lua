-- include: queue

-- What is noted of a job beside its record: progress, log, history of attempts, children, counts of a batch.
local function drop_notes(id) call('HDEL', stem .. 'notes', 'p' .. id, 'l' .. id, 'a' .. id, 'c' .. id, 'b' .. id, 's' .. id) end
