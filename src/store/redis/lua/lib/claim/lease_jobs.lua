-- include: queue

-- Leases jobs that have not run before to a session.
local function lease_jobs(ids, first, worker, nonce)
  local fields, k, prefix = {}, 0, nil
  -- Formatting a number costs more than everything else that is done for a job here.
  local digits = { [0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' }
  local head, tail = '1.' .. first .. '-', '.' .. nonce .. ' 0 0 ' .. now .. ' ' .. worker
  for i = 1, #ids do
    local ones = (i - 1) % 10
    if ones == 0 then prefix = head .. string.format('%02d', (i - 1) / 10) end
    fields[k + 1], fields[k + 2] = ids[i], prefix .. digits[ones] .. tail
    k = k + 2
  end
  call('HSET', stem .. 'active', unpack(fields))
end
