-- Takes a plain lock: one key that holds a value of ours until it expires, as other clients of Redis
-- do with SET key value NX PX ttl. No queue. The same value again is a retry.
--   KEYS[1] the key   KEYS[2] last token   KEYS[3] the head of a fair lock of the same name
--   In a cluster only the key: with more than one Redis refuses it while the slot is moved.
--   ARGV[1] value   ARGV[2] ttl in ms
-- Returns {1, token} taken   {0, ms} held by another, who keeps it for so long (-1: for ever)
--         {-2, why} there is a fair lock of this name
local time = redis.call('TIME')
local largest = KEYS[2] and tonumber(redis.call('MGET', KEYS[2])[1] or 0) or 0
local token = math.max(time[1] * 1000000 + time[2], largest + 1)

-- Records the token, so that every later one is larger.
local function taken()
  if KEYS[2] then
    redis.call('SET', KEYS[2], string.format('%.0f', token))
  end
  return {1, token}
end

if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local head = KEYS[3] and redis.call('GET', KEYS[3])
  local form = head and string.sub(head, 1, 1)
  local left = form and form ~= 'T' and redis.call('PTTL', KEYS[3]) or 0
  if left == -1 then
    -- Somebody made it persist: it has a minute.
    left = 120000
    redis.call('PEXPIRE', KEYS[3], left)
  end
  if form == 'F' or left > 60000 then
    redis.call('DEL', KEYS[1])
    return {-2, 'it is a fair lock at the moment, not one with Fairness::barging'}
  end
  return taken()
end
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return taken()
end
return {0, redis.call('PTTL', KEYS[1])}
