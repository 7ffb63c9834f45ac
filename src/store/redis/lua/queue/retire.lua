-- retire: removes the remaining keys of an empty queue that nobody uses. ARGV: now, 1 to check only.
-- Reply: 1 if nothing is left, or nothing but what would be removed; else 0.
-- include: allow_oom unused
allow_oom()
if not is_unused() then return 0 end
if ARGV[2] ~= '1' then
  for _, name in ipairs(COMPANIONS) do call('UNLINK', stem .. name) end
  call('UNLINK', stem .. 'meta', stem .. 'info', stem .. 'raw', stem .. 'rates')
end
return 1
