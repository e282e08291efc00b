-- Fenced writes: checks the token, then executes the writes in order, until Redis rejects one.
--   KEYS[1] key of the fence   KEYS[2..] one key per write
--   ARGV[1] token   ARGV[2] 'once' or 'again'   then for each write: command, count, arguments
-- Appended to admit.lua. Returns the result of tenure_admit().
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
