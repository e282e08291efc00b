-- Lists the holders. Writes nothing.
--  KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue
--  ARGV[1] maximum number of holders
-- Returns {member, detail, member, detail, ...}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local head = redis.call('GET', KEYS[1])
local form = head and string.sub(head, 1, 1)
if form == 'H' then
  local token, member, request, want, rest =
    string.match(head, '^H (%d+) (%S+)%.(%d+) %S+ (%S+) (.*)$')
  local left = redis.call('PTTL', KEYS[1])
  local is_alive = left > 60000 or left == -1
  return is_alive and {member, table.concat({want, token, request, rest}, ' ')} or {}
elseif form ~= 'F' then
  return {}
end
local found = {}
local alive = redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. string.format('%.0f', now), '+inf')
for _, member in ipairs(alive) do
  if #found >= 2 * ARGV[1] then
    break
  end
  if not redis.call('ZSCORE', KEYS[4], member) then
    found[#found + 1] = member
    found[#found + 1] = redis.call('HGET', KEYS[2], member)
  end
end
return found
