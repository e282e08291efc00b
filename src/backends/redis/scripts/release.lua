-- Gives a hold back, once, and hands the lock over to whoever is next.
--   KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue
--   ARGV[1] member   ARGV[2] the request that began the hold
--   ARGV[3] how the head begins if this is the one holder   ARGV[4] token
--   ARGV[5] an id of this release, so that a retry never counts down twice
-- Returns 1 given back   2 the same, and there are more to be let in: ask look.lua
--         0 not held   3 not held any more, and the last to give it back was this one
local head = redis.call('GET', KEYS[1])
if not head then
  return 0
end
local this = ARGV[1] .. '.' .. ARGV[2]
if string.sub(head, 1, #ARGV[3]) == ARGV[3] then
  -- The usual case. Where there is no memory for the last token, the lock itself still goes.
  local kept = redis.pcall('SET', KEYS[1], 'T ' .. ARGV[4] .. ' ' .. this, 'PX', 60000)
  if kept.err then
    redis.call('DEL', KEYS[1])
  end
  return 1
end
if string.sub(head, 1, 1) == 'T' then
  return string.match(head, '^T %d+ (%S+)$') == this and 3 or 0
end

--@include lock.lua

open(head)
local detail = redis.call('HGET', KEYS[2], ARGV[1])
local result = 0
if detail and not redis.call('ZSCORE', KEYS[4], ARGV[1]) then
  local held, token, requests, client, label = parse(detail)
  local mark = 'r' .. ARGV[5]
  local rest = without((string.gsub(requests, ',r%d+', '')), ARGV[2])
  if has(requests, mark) then
    result = 1
  elseif rest == '' then
    remove(ARGV[1])
    lock.last = this
    result = 1
  elseif rest then
    redis.call('HDEL', KEYS[2], '')
    redis.call('HSET', KEYS[2], ARGV[1],
      table.concat({held, token, rest .. ',' .. mark, client, label}, ' '))
    result = 1
  end
end
if result == 0 and lock.last == this then
  result = 3
end
serve()
save()
return result == 1 and lock.more and 2 or result
