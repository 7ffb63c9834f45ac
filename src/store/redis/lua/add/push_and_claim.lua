-- push_and_claim: push, and after it the claim of a worker in the same process that waits for work.
-- ARGV: those of claim, then those of push from the second on. The claim asks for at least as many entries as there are tasks.
-- Reply: that of push, that of claim.
-- first: hand_over_tasks
local pushed = push({ ARGV[1], unpack(ARGV, 7) })
return { pushed, claim(ARGV) }
