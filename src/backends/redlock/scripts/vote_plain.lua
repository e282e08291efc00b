-- Vote for a barging lock, compatible with other Redlock libraries: one plain key that holds our
-- value until it expires (SET key value NX PX ttl). No token. The same value again is a retry.
--  KEYS[1] plain key   KEYS[2] head of a fenced lock of the same name
--  ARGV[1] value   ARGV[2] TTL in ms   ARGV[3] deadline by the server's clock in µs; 0: none
-- Returns as vote.lua does, with 0 for the token and for the unknown TTL of another client.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local not_after = tonumber(ARGV[3])
if not_after > 0 and now > not_after then
  return {-1, now}
end
local head = redis.call('GET', KEYS[2])
local form = head and string.sub(head, 1, 1)
local left = form and form ~= 'T' and redis.call('PTTL', KEYS[2]) or 0
if left == -1 then
  -- The key has no expiry any more (PERSIST): the vote stays for one minute.
  left = 120000
  redis.call('PEXPIRE', KEYS[2], left)
end
if form == 'F' or left > 60000 then
  return {-2, 'the name is used by a fenced lock at the moment, not by one with Fairness::barging'}
end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) or
    redis.call('GET', KEYS[1]) == ARGV[1] then
  return {1, 0, now}
end
return {0, redis.call('PTTL', KEYS[1]), 0, now}
