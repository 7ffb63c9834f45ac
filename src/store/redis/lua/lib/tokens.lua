-- Whether a lease has exactly this token: the run of an active job begins with it. No new string is made: the server hashes each of them.
local function has_token(run, token)
  return run and string.find(run, ' ', 1, true) == #token + 1 and string.find(run, token, 1, true) == 1
end

-- The claim sequence in a token.
local function claim_sequence(token)
  local first, index = string.match(token, '%.(%d+)%-(%d+)%.')
  return first * 1000 + index
end
