-- The jobs claimed so far: their ids and, at the same indexes, '\0<group>' of jobs with a group.
local ids, groups = {}, {}
