-- Whether a lease has exactly this token: the run of an active job begins with it.
local function has_token(run, token) return run and string.match(run, '^%S+') == token end

-- The claim sequence in a token.
local function claim_sequence(token)
  local first, index = string.match(token, '%.(%d+)%-(%d+)%.')
  return first * 1000 + index
end
