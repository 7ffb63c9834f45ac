-- source_position: the position of a source. ARGV: now, source. Reply: its position, or ''.
-- include: queue
return call('HGET', stem .. 'marks', ARGV[2]) or ''
