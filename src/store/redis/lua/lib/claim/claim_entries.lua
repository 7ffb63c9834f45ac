-- The jobs that a claim has taken so far: their ids and, at the same places, '\0<group>' of those that have a group.
local ids, groups = {}, {}
