-- join: opens a worker's session. ARGV: now, worker, lease in ms, info. Reply: 1.
allow_oom()
pad()
call('ZADD', stem .. 'workers', now + ARGV[3], ARGV[2])
-- from here on a gap between sweeps is known for what it is
call('HSETNX', stem .. 'meta', 'swept', now)
call('HSET', stem .. 'info', ARGV[2], ARGV[4])
return 1
