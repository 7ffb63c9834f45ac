-- hand_over_jobs: the beginning of add_and_claim, for a worker in the same process that waits at an empty queue: the jobs are leased at once and never wait. It
-- returns the time and the first number of the claim, from which the caller makes both replies, or lets the rest continue with nothing changed.
-- include: hand_over
if ARGV[8] == '1' then
  local worker = ARGV[2]
  local deadline, hungry, waiting = waiting_session(worker)
  if deadline then
    local jobs = cmsgpack.unpack(ARGV[9])
    local first = take_numbers(#jobs / 2)
    lease_new_jobs(jobs, first, worker, ARGV[4])
    keep_waiting(worker, deadline, hungry, waiting)
    return { now, first }
  end
end
