-- deliver_tasks: the beginning of push, as deliver_jobs is that of add_plain, for a single task.
-- include: deliver
local waiting = #ARGV == 6 and ARGV[2] == '' and ARGV[3] == '' and tonumber(ARGV[4]) <= 16384 and call('HGET', stem .. 'meta', 'waiting')
if waiting then
  local worker, nonce, channel = waiting_worker(waiting, 1)
  if worker then
    call('HLEN', stem .. 'leased') -- fails here if it is of the wrong type
    local first = take_numbers(1)
    if deliver(worker, nonce, channel, first, 'task', ARGV[6]) then
      lease_new_task(ARGV[6], first, worker, nonce)
      return 1
    end
  end
end
