-- Renews a plain vote, or changes its TTL.
--  KEYS[1] plain key   ARGV[1] value   ARGV[2] TTL in ms
--  ARGV[3] 0: renewal, which never shortens
-- Returns as extend.lua does.
local value = redis.call('GET', KEYS[1])
if value ~= ARGV[1] then
  return value and 0 or 3
end
if ARGV[3] ~= '0' or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
