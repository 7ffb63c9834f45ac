-- include: groups holds wake

-- Lets work continue after leases ended: the groups of these runs, and the queue itself if its concurrency is limited.
local function release_groups(runs)
  if grouped() then
    local names = release_holds(runs)
    if call('EXISTS', stem .. 'full') == 1 then
      -- a group that was at its limit may start more jobs
      for _, group in ipairs(names) do
        if call('SREM', stem .. 'full', group) == 1 then requeue_group(group) end
      end
    end
    wake()
  elseif get_limits() then
    wake()
  end
end
