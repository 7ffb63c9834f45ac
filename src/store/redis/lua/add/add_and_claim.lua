-- add_and_claim: add_plain, and after it the claim of a worker in the same process that waits for work.
-- ARGV: those of claim, then those of add_plain from the second on. The claim asks for at least as many entries as there are jobs.
-- Reply: that of add_plain, that of claim.
-- first: hand_over_jobs
local added = add_plain({ ARGV[1], unpack(ARGV, 7) })
return { added, claim(ARGV) }
