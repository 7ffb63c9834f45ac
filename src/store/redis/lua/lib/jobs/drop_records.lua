-- include: queue notes

local function drop_records(ids)
  if #ids == 0 then return end
  call('HDEL', stem .. 'jobs', unpack(ids))
  if call('EXISTS', stem .. 'ended') == 1 then call('HDEL', stem .. 'ended', unpack(ids)) end
  if call('EXISTS', stem .. 'hidden') == 1 then call('HDEL', stem .. 'hidden', unpack(ids)) end
  if call('EXISTS', stem .. 'notes') == 1 then
    for _, id in ipairs(ids) do drop_notes(id) end
  end
end
