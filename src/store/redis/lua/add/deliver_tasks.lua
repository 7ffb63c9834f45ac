-- deliver_tasks: the beginning of push, as deliver_jobs is that of add_plain, for a single task.
-- include: deliver lease_tasks
if #ARGV == 6 and ARGV[2] == '' and ARGV[3] == '' and tonumber(ARGV[4]) <= 16384 and call('HEXISTS', stem .. 'meta', 'waiting') == 1 then
  local to = waiting_worker(1)
  if to then
    call('HLEN', stem .. 'leased') -- fails here if it is of the wrong type
    local tasks, first = { ARGV[6] }, call('HINCRBY', stem .. 'meta', 'seq', 1)
    if deliver(to, first, { '50', cmsgpack.pack(tasks) }) then
      lease_tasks(tasks, tonumber(ARGV[4]), first, to.worker, to.nonce)
      return 1
    end
  end
end
