-- remove: removes the records of ended jobs. ARGV: now, id… Reply: per id 1 or 0.
-- include: allow_oom remove_ended
allow_oom()
local reply = {}
for i = 2, #ARGV do reply[#reply + 1] = remove_ended(ARGV[i]) and 1 or 0 end
return reply
