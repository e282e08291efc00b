-- Makes a share of a hold, without letting go, and lets in whoever may go then. The token stays.
--   KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue   KEYS[5] last token
--   ARGV[1] member   ARGV[2] the request that began the hold
-- Returns 1 it is a share   2 the same, and there are more to be let in: ask expire.lua   0 not held
local head = redis.call('GET', KEYS[1])
local form = head and string.sub(head, 1, 1)
if not form or form == 'T' then
  return 0
end

--@include lock.lua

open(head)
local detail = redis.call('HGET', KEYS[2], ARGV[1])
local result = 0
if detail and not redis.call('ZSCORE', KEYS[4], ARGV[1]) then
  local held, token, requests, client, label = parse(detail)
  if has(requests, ARGV[2]) then
    redis.call('HDEL', KEYS[2], '')
    redis.call('HSET', KEYS[2], ARGV[1],
      table.concat({'S', token, requests, client, label}, ' '))
    lock.mode, lock.changed = 'S', true
    result = 1
  end
end
serve()
save()
return result == 1 and lock.more and 2 or result
