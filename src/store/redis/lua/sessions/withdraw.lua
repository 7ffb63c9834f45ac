-- withdraw: a worker that is about to leave no longer waits for a delivery. ARGV: now, worker. Reply: 1.
-- include: waiting
stop_waiting(ARGV[2], call('HGET', stem .. 'meta', 'waiting'))
return 1
