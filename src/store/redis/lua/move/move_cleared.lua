-- move_cleared, in the slot of the other queue: nobody delivers these messages again but one that has already read them, which move_in refuses after
-- five minutes. ARGV: now, '<nonce>\0<id>'… Reply: 1.
-- include: allow_oom
allow_oom()
for i = 2, #ARGV do call('ZADD', stem .. 'arrived', 'XX', now + 600000, ARGV[i]) end
return 1
