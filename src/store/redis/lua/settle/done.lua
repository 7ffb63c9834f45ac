-- done: settle, for jobs that are done with default retention, or none (keep-count 0), and no unique key to free.
-- ARGV: now, keep-count, ms for which the ids stay taken (0 = not at all), packed list of groups of jobs with the same outcome: 'attempt crashes priority', result, number of
-- jobs, and per job: id, token.
-- Reply: outbox flag, then the indexes of jobs whose token no longer matched.
-- first: done_plain
-- include: breaker close_jobs dependencies events release_groups
for _, token in ipairs(tokens) do count_success(token) end
release_groups(ended)
event_of_all('done', live)
tell_breaker()
if call('EXISTS', stem .. 'reserved') == 1 then call('ZREM', stem .. 'reserved', unpack(live)) end
local awaited = take_awaited(live)
release_needs(live)
if ARGV[3] ~= '0' then remember_ids(live, tonumber(ARGV[3])) end
if count == 0 then
  if call('EXISTS', stem .. 'kept') == 1 then call('HSET', stem .. 'ended', unpack(fields)) end
  drop_ended(live)
else
  list_done()
end
announce_ends(awaited)
if call('EXISTS', stem .. 'downs') == 1 then
  local ended = {}
  for i, id in ipairs(live) do ended[2 * i - 1], ended[2 * i] = id, 'done' end
  reply[1] = notify_dependents(ended)
end
return reply
