-- Gives a plain vote its whole ttl again, or another ttl.
--   KEYS[1] the key   ARGV[1] value   ARGV[2] ttl in ms   ARGV[3] 0: a renewal, which never shortens
-- Returns as extend.lua does.
local value = redis.call('GET', KEYS[1])
if value ~= ARGV[1] then
  return value and 0 or 3
end
if ARGV[3] ~= '0' or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
