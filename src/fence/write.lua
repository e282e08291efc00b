-- KEYS[1] the fence   KEYS[2..] one key for each write
-- ARGV[1] token   ARGV[2] 'once' or 'again'   then for each write: command, count, arguments
-- Follows admit.lua. The token is checked first, then the writes are done in order: all, unless Redis
-- refuses one. Returns what tenure_admit returns.
local verdict, highest = tenure_admit(KEYS[1], ARGV[1], ARGV[2] == 'once')
if verdict == 'admitted' then
  local at = 3
  for write = 2, #KEYS do
    local last = at + 1 + tonumber(ARGV[at + 1])
    redis.call(ARGV[at], KEYS[write], unpack(ARGV, at + 2, last))
    at = last + 1
  end
end
return {verdict, highest}
