-- hand_over_jobs: the beginning of add_and_claim, for a worker that waits at an empty queue: the jobs are leased at once and never wait. It returns both
-- replies, or lets the rest continue with nothing changed.
-- include: hand_over lease_jobs
if ARGV[8] == '1' then
  local worker = ARGV[2]
  local deadline, hungry = hand_over_to(worker)
  if deadline then
    local fields = cmsgpack.unpack(ARGV[9])
    local ids, records, n = {}, {}, #fields / 2
    for i = 1, n do ids[i], records[i] = fields[2 * i - 1], fields[2 * i] end
    local first = call('HINCRBY', stem .. 'meta', 'seq', n) - n + 1
    renew_session(worker, deadline, ARGV[5])
    call('HSET', stem .. 'jobs', unpack(fields))
    lease_jobs(ids, first, worker, ARGV[4])
    event_of_all('added', ids)
    event_of_all('started', ids, '1')
    stay_hungry(hungry)
    return { {}, { 'ok', 0, '', now, first, cmsgpack.pack(ids), cmsgpack.pack(records), '\144' } }
  end
end
