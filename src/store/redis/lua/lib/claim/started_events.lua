-- include: events runs

-- Records that these jobs have started, in their order.
local function tell_started(ids, runs)
  if not watched() then return end
  local fresh = {}
  for i, id in ipairs(ids) do
    local _, attempt = parse_run(runs[i])
    if attempt == 0 then
      fresh[#fresh + 1] = id
    else
      event_of_all('started', fresh, '1')
      fresh = {}
      event('started', id, attempt + 1)
    end
  end
  event_of_all('started', fresh, '1')
end
