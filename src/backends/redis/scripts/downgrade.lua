-- Turns an exclusive hold into a shared one without releasing it, and grants the waiters that this
-- admits. The token stays the same.
--  KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue   KEYS[5] last token
--  ARGV[1] member   ARGV[2] request that began the hold
-- Returns 1 shared   2 shared, and more waiters can be granted: call expire.lua   0 not held
local head = redis.call('GET', KEYS[1])
local form = head and string.sub(head, 1, 1)
if not form or form == 'T' then
  return 0
end

--@include lock.lua

load_lock(head)
local detail = redis.call('HGET', KEYS[2], ARGV[1])
local result = 0
if detail and not redis.call('ZSCORE', KEYS[4], ARGV[1]) then
  local held, token, requests, client, label = parse(detail)
  if has_request(requests, ARGV[2]) then
    redis.call('HDEL', KEYS[2], '')
    redis.call('HSET', KEYS[2], ARGV[1],
      table.concat({'S', token, requests, client, label}, ' '))
    lock.mode, lock.changed = 'S', true
    result = 1
  end
end
grant_waiters()
save_lock()
return result == 1 and lock.has_more and 2 or result
