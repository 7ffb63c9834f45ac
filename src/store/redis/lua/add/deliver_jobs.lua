-- deliver_jobs: the beginning of add_plain, for a worker of another process that waits at an empty queue: the jobs are leased and sent to it at once. It returns
-- the reply, or lets the rest continue with nothing changed.
-- include: deliver lease_jobs
if ARGV[3] == '1' and #ARGV[4] <= 16384 and call('HEXISTS', stem .. 'meta', 'waiting') == 1 then
  local fields = cmsgpack.unpack(ARGV[4])
  local n = #fields / 2
  local to = waiting_worker(n)
  if to then
    -- A key of the wrong type must fail here, before anything is written or sent.
    call('HLEN', stem .. 'jobs')
    call('HLEN', stem .. 'active')
    local ids, records = {}, {}
    for i = 1, n do ids[i], records[i] = fields[2 * i - 1], fields[2 * i] end
    local first = call('HINCRBY', stem .. 'meta', 'seq', n) - n + 1
    if deliver(to, first, { cmsgpack.pack(ids), cmsgpack.pack(records) }) then
      call('HSET', stem .. 'jobs', unpack(fields))
      lease_jobs(ids, first, to.worker, to.nonce)
      event_of_all('added', ids)
      event_of_all('started', ids, '1')
      return {}
    end
  end
end
