-- Gives a plain lock its whole ttl again, if it is still ours.
--   KEYS[1] the key   ARGV[1] ttl in ms, with '=' before it if it may make the time shorter
--   ARGV[2] value
-- Returns a digit: 0 gone   1 holds
if redis.call('GET', KEYS[1]) == ARGV[2] then
  local exact, ttl = string.match(ARGV[1], '^(=?)(%d+)$')
  if exact == '=' or redis.call('PTTL', KEYS[1]) <= tonumber(ttl) then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
  return '1'
end
return '0'
