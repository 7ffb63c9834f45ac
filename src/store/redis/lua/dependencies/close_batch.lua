-- close_batch: no more members; the job of the batch runs when all have ended. ARGV: now, id.
-- Reply: the state of that job afterwards, '' if there is no such batch.
-- include: allow_oom dependencies
allow_oom()
local id = ARGV[2]
local batch = read_batch(id)
if not batch then return '' end
if batch.open == '1' then
  batch.open = '0'
  write_batch(id, batch)
  deliver_end(id, '\0', 'done')
end
return (find_job(id))
