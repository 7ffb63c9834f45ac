-- hand_over_tasks: the beginning of push_and_claim, as hand_over_jobs is that of add_and_claim.
-- include: hand_over lease_tasks
if ARGV[7] == '' and ARGV[8] == '' then
  local worker = ARGV[2]
  local deadline, hungry = hand_over_to(worker)
  if deadline then
    local tasks = { unpack(ARGV, 11) }
    local first = call('HINCRBY', stem .. 'meta', 'seq', #tasks) - #tasks + 1
    renew_session(worker, deadline, ARGV[5])
    local size, packs = lease_tasks(tasks, tonumber(ARGV[9]), first, worker, ARGV[4])
    stay_hungry(hungry)
    return { 1, { 'ok', 0, '', now, first, size, unpack(packs) } }
  end
end
