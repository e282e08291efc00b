-- tenure_admit(key, token, once): the fence as a function for scripts. Write nothing unless the
-- first value is 'admitted'.
--   key    where the newest token is kept: RedisFence::key_of(resource), one of the script's KEYS
--   token  decimal digits, as they came with the lock
--   once   true: a token that has been here is refused when it comes again
-- Returns 'admitted', 'stale' or 'reused', and the newest token that has been here. Tokens have 63
-- bits and Lua's numbers 53, so they are compared as digits: the longer is larger.
local function tenure_admit(key, token, once)
  local function is_token(digits)
    return type(digits) == 'string' and #digits <= 19 and string.find(digits, '^[1-9]%d*$') ~= nil
  end
  if not is_token(token) then
    error('TENURE the argument is no fencing token', 0)
  end
  local highest = redis.call('GET', key)
  if highest then
    if not is_token(highest) then
      error('TENURE the key of the fence holds something that is no fencing token', 0)
    end
    if #token < #highest or (#token == #highest and token < highest) then
      return 'stale', highest
    end
    if once and token == highest then
      return 'reused', highest
    end
  end
  redis.call('SET', key, token)
  return 'admitted', token
end
