-- Acquires a barging lock: one plain key that holds our value until it expires, compatible with SET
-- key value NX PX ttl of other Redis clients. No queue. The same value again is a retry.
--  KEYS[1] plain key   KEYS[2] last token   KEYS[3] head of a fair lock of the same name
--  In a cluster only the plain key, because the others are in another slot.
--  ARGV[1] value   ARGV[2] TTL in ms
-- Returns {1, token} granted   {0, ms} held by another client, ms until it expires (-1: never)
--         {-2, why} there is a fair lock of this name
local time = redis.call('TIME')
local largest = KEYS[2] and tonumber(redis.call('MGET', KEYS[2])[1] or 0) or 0
local token = math.max(time[1] * 1000000 + time[2], largest + 1)

-- Records the token, so that every later one is larger.
local function granted()
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
    -- The key has no expiry any more (PERSIST, RESTORE): the holder keeps the lock for one minute.
    left = 120000
    redis.call('PEXPIRE', KEYS[3], left)
  end
  if form == 'F' or left > 60000 then
    redis.call('DEL', KEYS[1])
    return {-2, 'the name is used by a fair lock at the moment, not by one with Fairness::barging'}
  end
  return granted()
end
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return granted()
end
return {0, redis.call('PTTL', KEYS[1])}
