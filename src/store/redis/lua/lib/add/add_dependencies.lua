-- include: queue runs kept_records

-- Registers a job with its upstream jobs, or its children (`what` says which), that have not ended. Returns how many there are, and the
-- reason if one has already failed it.
local function link_upstreams(id, needs, what)
  local left, failed = 0, nil
  for _, p in ipairs(needs) do
    local policy, queue, up = ARGV[p], ARGV[p + 1], ARGV[p + 2]
    local state = queue == '' and (find_job(up)) or 'ready'
    -- an upstream job of the same batch that was refused because the queue is full counts as cancelled
    local known = call('HEXISTS', stem .. 'jobs', up) == 1
    if queue == '' and not known then state = 'cancelled' end
    if queue == '' and known then keep_record(up, '\0' .. id) end
    if state == 'done' or (policy == 'f' and (state == 'dead' or state == 'cancelled')) then
      -- this dependency is already met
    elseif state == 'dead' or state == 'cancelled' then
      failed = what .. ' ended ' .. state .. ': ' .. up
    else
      call('HSET', stem .. 'edges', id .. '\0' .. queue .. '\0' .. up, policy)
      left = left + 1
      if queue == '' then
        call('SADD', stem .. 'deps:' .. up, '\0' .. id)
        call('HSET', stem .. 'downs', up, 1)
      end
    end
  end
  return left, failed
end
