-- include: queue claim_entries runs record unique_keys

-- Formats three digits from prebuilt strings: formatting a number costs more than everything else done per job here.
local DIGIT = { [0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' }
local function digits(i)
  local ones, tens = i % 10, i % 100
  return DIGIT[(i - tens) / 100] .. DIGIT[(tens - ones) / 10] .. DIGIT[ones]
end

-- Starts the reservation, and frees a unique key that is only held while the job waits. Skipped until the queue has had
-- such a job, which an add in the same script may have brought: claim looks.
local has_reservations
-- Ends and ids of the reservations that start.
local reserved_fields = {}
local function start_reservation(id, record)
  local kind = (string.byte(record) - 48) % 4
  if kind == 0 then return end
  local reservation, key
  if kind == 1 then reservation = string.match(record, '^%d+', 11) else reservation, key = record_head(record) end
  if reservation then
    local k = #reserved_fields
    reserved_fields[k + 1], reserved_fields[k + 2] = now + reservation, id
  end
  if key then free_unique_key(key, id) end
end

-- Fields of `active` for the jobs of a claim, their size in bytes, and the ids of jobs that had a run.
local lease_fields, leased_bytes, with_runs = {}, 0, {}
local lease_count = 0

-- `ends` holds what all leases of the claim have in common: the token parts before and after the index of each entry, and
-- the rest of the lease of a new job.
local function lease_job(place, record, run, group, ends)
  local id = ids[place]
  local field = digits(ends.index)
  if run then
    local _, attempt, crashes, priority = parse_run(run)
    field = (attempt + 1) .. ends.head .. field .. ends.tail .. ' ' .. crashes .. ' ' .. priority .. ' ' .. now .. ' ' .. ends.worker .. group
    with_runs[#with_runs + 1] = id
  else
    field = ends.fresh_head .. field .. ends.fresh_tail .. group
  end
  ends.index = ends.index + 1
  lease_fields[lease_count + 1], lease_fields[lease_count + 2] = id, field
  lease_count = lease_count + 2
  leased_bytes = leased_bytes + #record
  if has_reservations then start_reservation(id, record) end
end

-- The same for a batch of new jobs, the common case: each ten tokens differ in their last digit only.
local function lease_fresh(records, ends)
  local prefix
  local fields, bytes, k, fresh_tail = lease_fields, 0, 0, ends.fresh_tail
  for i = 1, #ids do
    local ones = (i - 1) % 10
    if ones == 0 then prefix = ends.fresh_head .. string.sub(digits(i - 1), 1, 2) end
    local record = records[i]
    fields[k + 1], fields[k + 2] = ids[i], prefix .. DIGIT[ones] .. fresh_tail .. (groups[i] or '')
    k = k + 2
    bytes = bytes + #record
    if has_reservations then start_reservation(ids[i], record) end
  end
  lease_count, leased_bytes = k, bytes
end
