-- deliver_jobs: the beginning of add_plain, for a worker of another process that waits at an empty queue: the jobs are leased and sent to it at once. It returns
-- the reply, or lets the rest continue with nothing changed.
-- include: deliver
local waiting = ARGV[3] == '1' and #ARGV[4] <= 16384 and call('HGET', stem .. 'meta', 'waiting')
if waiting then
  local jobs = cmsgpack.unpack(ARGV[4])
  local worker, nonce, channel = waiting_worker(waiting, #jobs / 2)
  if worker then
    -- A key of the wrong type must fail here, before anything is written or sent.
    call('HLEN', stem .. 'jobs')
    call('HLEN', stem .. 'active')
    local first = take_numbers(#jobs / 2)
    if deliver(worker, nonce, channel, first, 'jobs', ARGV[4]) then
      lease_new_jobs(jobs, first, worker, nonce)
      return {}
    end
  end
end
