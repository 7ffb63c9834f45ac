-- hand_over_tasks: the beginning of push_and_claim, as hand_over_jobs is that of add_and_claim, for a single task.
-- include: hand_over
if #ARGV == 11 and ARGV[7] == '' and ARGV[8] == '' then
  local worker = ARGV[2]
  local deadline, hungry, waiting = waiting_session(worker)
  if deadline then
    local first = take_numbers(1)
    lease_new_task(ARGV[11], first, worker, ARGV[4])
    keep_waiting(worker, deadline, hungry, waiting)
    return { now, first }
  end
end
