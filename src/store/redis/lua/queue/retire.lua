-- retire: removes what is left of a queue in which nothing is and that nobody uses. ARGV: now, 1 to look only.
-- Reply: 1 when nothing is left, or nothing but what would be removed; else 0.
-- include: allow_oom unused
allow_oom()
if not is_unused() then return 0 end
if ARGV[2] ~= '1' then
  for _, name in ipairs(COMPANIONS) do call('UNLINK', stem .. name) end
  call('UNLINK', stem .. 'meta', stem .. 'info', stem .. 'raw', stem .. 'rates')
end
return 1
