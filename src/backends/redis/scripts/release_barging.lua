-- Gives a plain lock back, if it is still ours.
--   KEYS[1] the key   ARGV[1] value
-- Returns 1 given back   0 not held
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
