-- release_kept, in the slot of upstream jobs: dependents in another queue no longer need their records.
-- ARGV: now, then pairs: upstream id, '<queue>\0<id>' of the dependent.
-- include: allow_oom kept_records
allow_oom()
for p = 2, #ARGV, 2 do release_record(ARGV[p], ARGV[p + 1]) end
return 1
