-- include: record

-- The old record with the new payload, which may be text or bytes (bit 8).
local function with_payload(old, new)
  local flags, bytes = string.byte(old) - 48, (string.byte(new) - 48) % 16 >= 8
  if bytes ~= (flags % 16 >= 8) then flags = flags + (bytes and 8 or -8) end
  local _, _, _, old_body = record_head(old)
  local _, _, _, new_body = record_head(new)
  return string.char(48 + flags) .. string.sub(old, 2, old_body - 1) .. string.sub(new, new_body)
end
