-- join: opens a worker's session. ARGV: now, worker, lease in ms, info, 1 if its raw tasks return with no crash counted.
-- Reply: 1.
-- include: allow_oom pad
allow_oom()
pad('active')
call('ZADD', stem .. 'workers', now + ARGV[3], ARGV[2])
-- from here on a gap between sweeps can be recognised
call('HSETNX', stem .. 'meta', 'swept', now)
call('HSET', stem .. 'info', ARGV[2], ARGV[4])
if ARGV[5] == '1' then call('SADD', stem .. 'raw', ARGV[2]) end
return 1
