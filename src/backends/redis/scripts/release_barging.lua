-- Releases a barging lock, if it still has our value.
--  KEYS[1] plain key   ARGV[1] value
-- Returns 1 released   0 not held
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
