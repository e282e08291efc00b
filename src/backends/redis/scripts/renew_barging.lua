-- Renews a barging lock, if it still has our value.
--  KEYS[1] plain key   ARGV[1] TTL in ms; '=' before it permits to shorten the expiry
--  ARGV[2] value
-- Returns a digit: 0 gone   1 held
if redis.call('GET', KEYS[1]) == ARGV[2] then
  local exact, ttl = string.match(ARGV[1], '^(=?)(%d+)$')
  if exact == '=' or redis.call('PTTL', KEYS[1]) <= tonumber(ttl) then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
  return '1'
end
return '0'
