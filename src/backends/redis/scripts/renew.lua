-- Gives members of one lock their whole ttl again, whether they hold or wait.
--   KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue
--   ARGV[2n - 1] ttl in ms   ARGV[2n] member
-- Returns a digit for each: 0 gone   1 holds   2 waits
local head = redis.call('GET', KEYS[1])
local form = head and string.sub(head, 1, 1)

if form == 'H' then
  local member = string.match(head, '^H %S+ (%S+)')
  local left = redis.call('PTTL', KEYS[1])
  local states = {}
  for at = 1, #ARGV, 2 do
    local is_here = member == ARGV[at + 1] and left > 60000
    if is_here and left < ARGV[at] + 60000 then
      redis.call('PEXPIRE', KEYS[1], ARGV[at] + 60000)
    end
    states[#states + 1] = is_here and '1' or '0'
  end
  return table.concat(states)
elseif form ~= 'F' then
  return string.rep('0', #ARGV / 2)
end

--@include lock.lua

open(head)
redis.call('HDEL', KEYS[2], '')
local states = {}
for at = 1, #ARGV, 2 do
  local member, expiry = ARGV[at + 1], now + ARGV[at]
  local current = redis.call('ZSCORE', KEYS[3], member)
  if current then
    redis.call('ZADD', KEYS[3], whole(math.max(tonumber(current), expiry)), member)
    keep(expiry)
    states[#states + 1] = redis.call('ZSCORE', KEYS[4], member) and '2' or '1'
  else
    states[#states + 1] = '0'
  end
end
serve()
save()
return table.concat(states)
