-- tenure_admit(key, token, once): the fence as a function for scripts. A script writes only if the
-- first value is 'admitted'.
--   key    key of the newest token: RedisFence::key_of(resource), one of the script's KEYS
--   token  fencing token of the lock, in decimal digits
--   once   true: a token that was admitted before is rejected as 'reused'
-- Returns 'admitted', 'stale' or 'reused', and the newest admitted token. Tokens have 63 bits and
-- numbers of Lua 53, so tokens are compared as digits: the longer one is larger.
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
