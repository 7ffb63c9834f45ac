-- deliver_ends, in the slot of the dependent job: upstream jobs have ended.
-- ARGV: now, then triples: dependent id, '<queue>\0<id>' of the upstream job, its state. Reply: outbox flag.
-- include: allow_oom dependencies
allow_oom()
local ended = {}
for p = 2, #ARGV, 3 do
  local skipped, state = deliver_end(ARGV[p], ARGV[p + 1], ARGV[p + 2])
  if skipped then
    ended[#ended + 1] = skipped
    ended[#ended + 1] = state
  end
end
return notify_dependents(ended)
