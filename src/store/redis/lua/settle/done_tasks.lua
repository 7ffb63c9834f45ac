-- done_tasks: settle, for raw tasks that are done. ARGV: now, packed list: a field of `leased`, then the indexes in the task batch in order,
-- one character from '0' on each, or '' for a task in its own field.
-- Reply: numbers of the tasks no longer held.
-- include: allow_oom breaker limits task_batch unique_tasks wake
allow_oom()
local reply, number, items = {}, 0, cmsgpack.unpack(ARGV[2])
local sealing = call('EXISTS', stem .. 'sealed') == 1
local each = sealing or get_breaker()
for i = 1, #items, 2 do
  local field, places = items[i], items[i + 1]
  local value = call(sealing and 'HGET' or 'HEXISTS', leased, field)
  local held = value and value ~= 0 and end_places(field, places)
  if held ~= places or each then
    for k = 1, math.max(1, #places) do
      local place = string.sub(places, k, k)
      if not held or not string.find(held, place, 1, true) then
        reply[#reply + 1] = number + k
      else
        if sealing then end_unique_lock(token_at(field, place), task_at(value, place), false) end
        count_success(token_at(field, place))
      end
    end
  end
  number = number + math.max(1, #places)
end
tell_breaker()
if get_limits() then wake() end
return reply
