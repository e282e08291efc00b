-- Renews members of one lock, whether they hold or wait.
--  KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue   KEYS[5] last token
--  ARGV[2n - 1] TTL in ms; '=' before it permits to shorten the expiry   ARGV[2n] member
-- Returns a digit for each member: 0 gone   1 holds   2 waits
local head = redis.call('GET', KEYS[1])
local form = head and string.sub(head, 1, 1)

if form == 'H' then
  local member = string.match(head, '^H %d+ (%S+)%.')
  local left = redis.call('PTTL', KEYS[1])
  local states = {}
  for at = 1, #ARGV, 2 do
    local exact, ttl = string.match(ARGV[at], '^(=?)(%d+)$')
    -- -1: the key has no expiry any more (PERSIST, RESTORE).
    local is_here = member == ARGV[at + 1] and (left > 60000 or left == -1)
    if is_here then
      local life = exact == '=' and ttl + 60000 or math.max(left + 1, ttl + 60000)
      -- Never shorter than before, unless permitted. A renewal always writes, so that a WAIT after
      -- it covers it.
      redis.call('PEXPIRE', KEYS[1], life)
      left = life
    end
    states[#states + 1] = is_here and '1' or '0'
  end
  return table.concat(states)
elseif form ~= 'F' then
  return string.rep('0', #ARGV / 2)
end

--@include lock.lua

load_lock(head)
redis.call('HDEL', KEYS[2], '')
local states = {}
local is_shorter = false
for at = 1, #ARGV, 2 do
  local exact, ttl = string.match(ARGV[at], '^(=?)(%d+)$')
  local member, expiry = ARGV[at + 1], now + ttl
  local current = redis.call('ZSCORE', KEYS[3], member)
  if current then
    if exact == '' then
      expiry = math.max(tonumber(current), expiry)
    elseif expiry < tonumber(current) then
      is_shorter = true
    end
    redis.call('ZADD', KEYS[3], to_digits(expiry), member)
    extend_keys(expiry)
    states[#states + 1] = redis.call('ZSCORE', KEYS[4], member) and '2' or '1'
  else
    states[#states + 1] = '0'
  end
end
grant_waiters()
save_lock()
if is_shorter then
  -- The waiters have scheduled their expiry checks by the longer TTL. Notify the first one.
  local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
  local detail = first and redis.call('HGET', KEYS[2], first)
  if detail then
    local _, _, _, client = parse(detail)
    notify(client, 'l - ' .. string.match(KEYS[1], '^{[^:]*:(.*)}$'))
  end
end
return table.concat(states)
