-- count: entries by state. ARGV: now. Reply: blocked, scheduled, ready, active, done, dead, cancelled, dead jobs dropped.
-- include: counts
return counts()
