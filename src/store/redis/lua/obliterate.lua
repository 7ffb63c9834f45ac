-- obliterate: everything but the sessions and the claim sequence. ARGV: now, upstream ids whose dependents to forget…
-- Reply: 1.
for i = 2, #ARGV do call('UNLINK', stem .. 'deps:' .. ARGV[i]) end
call('UNLINK', list)
for _, group in ipairs(call('ZRANGE', stem .. 'lines', 0, -1)) do call('UNLINK', stem .. 'group:' .. group) end
for _, name in ipairs({ 'ready', 'prio', 'scheduled', 'blocked', 'jobs', 'runs', 'active', 'leased', 'over',
  'seals', 'sealed', 'ended', 'reserved', 'recent', 'done', 'dead', 'cancelled',
  'unique', 'unique_ttl', 'ghosts', 'notes', 'awaited', 'edges', 'downs', 'outbox', 'fates', 'fates_ttl',
  'turns', 'lines', 'full', 'reopen', 'rested', 'holds', 'events' }) do
  call('UNLINK', stem .. name)
end
call('HDEL', stem .. 'meta', 'bytes', 'stale', 'paused', 'front', 'back', 'grouped', 'sheaved')
pad('active')
if grouped() then pad('holds') end
call('PUBLISH', stem .. 'signals', 'r')
return 1
