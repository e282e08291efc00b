-- Gives a plain lock its whole ttl again, if it is still ours.
--   KEYS[1] the key   ARGV[1] ttl in ms   ARGV[2] value
-- Returns a digit: 0 gone   1 holds
if redis.call('GET', KEYS[1]) == ARGV[2] then
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
  end
  return '1'
end
return '0'
