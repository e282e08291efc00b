-- Releases a hold once, and hands the lock over to the next waiter.
--  KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue   KEYS[5] last token
--  ARGV[1] member   ARGV[2] request that began the hold
--  ARGV[3] prefix of the head if this is the only holder   ARGV[4] token
--  ARGV[5] id of this release, so that a retry never releases a second reentry
-- Returns 1 released   2 released, and more waiters can be granted: call expire.lua
--         0 not held   3 not held any more, and this hold was the last one released
local head = redis.call('GET', KEYS[1])
if not head then
  return 0
end
local this = ARGV[1] .. '.' .. ARGV[2]
if string.sub(head, 1, #ARGV[3]) == ARGV[3] then
  -- Fast path: the only holder, no waiters. If there is no memory for the last token, the head is
  -- deleted, so that the lock is released in any case.
  local kept = redis.pcall('SET', KEYS[1], 'T ' .. ARGV[4] .. ' ' .. this, 'PX', 60000)
  if kept.err then
    redis.call('DEL', KEYS[1])
  end
  return 1
end
if string.sub(head, 1, 1) == 'T' then
  return string.match(head, '^T %d+ (%S+)') == this and 3 or 0
end

-- Short path for the most frequent case with waiters: one exclusive holder, and the first waiter
-- wants the lock exclusively; both are alive. Same effect as the long path below, in a third of the
-- time. In any other case nothing has been changed.
local last, middle = string.match(head, '^F L (%d+) (%d+ X 1 %- 0 %d+) ')
if last == ARGV[4] then
  local time = redis.call('TIME')
  local digits = time[1] .. string.sub('000000' .. time[2], -6)
  local expired = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', string.sub(digits, 1, -4),
    'LIMIT', '0', '1')
  local holder = not expired[1] and redis.call('HGET', KEYS[2], ARGV[1]) or ''
  local first = redis.call('ZRANGE', KEYS[4], '0', '0')[1]
  local waiter = first and redis.call('HGET', KEYS[2], first) or ''
  local place, request, rest = string.match(waiter, '^X (%d+) (%S+) (.*)$')
  local client = place and string.match(rest, '^[^@ ]%S*')
  if client and string.match(holder, '^X %d+ (%S+) ') == ARGV[2] then
    if tonumber(last) >= tonumber(digits) then
      digits = string.format('%.0f', last + 1)
    end
    -- A first write, before any message: after it Redis does not refuse further writes of this
    -- script for lack of memory.
    redis.call('HDEL', KEYS[2], ARGV[1])
    if redis.call('PUBLISH', string.match(KEYS[1], '^{([^:]*):') .. ':wake:' .. client,
        'g ' .. first .. ' ' .. request .. ' ' .. digits .. ' ' .. place) > 0 then
      redis.call('ZREM', KEYS[3], ARGV[1])
      redis.call('ZREM', KEYS[4], first)
      redis.call('HSET', KEYS[2], first, 'X ' .. digits .. ' ' .. request .. ' ' .. rest)
      redis.call('SET', KEYS[1], 'F L ' .. digits .. ' ' .. middle .. ' ' .. this, 'KEEPTTL')
      if tonumber(digits) > tonumber(redis.call('MGET', KEYS[5])[1] or 0) then
        redis.call('SET', KEYS[5], digits)
      end
      return 1
    end
    redis.call('HSET', KEYS[2], ARGV[1], holder)
  end
end

--@include lock.lua

load_lock(head)
local detail = redis.call('HGET', KEYS[2], ARGV[1])
local result = 0
local held, token, requests, client, label = parse(detail or '')
-- A member with this token is a holder, so the queue need not be searched.
if held and (token == ARGV[4] or not redis.call('ZSCORE', KEYS[4], ARGV[1])) then
  local mark = 'r' .. ARGV[5]
  local rest = without_request((string.gsub(requests, ',r%d+', '')), ARGV[2])
  if has_request(requests, mark) then
    result = 1
  elseif rest == '' then
    remove_holder(ARGV[1], held)
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
grant_waiters()
save_lock()
return result == 1 and lock.has_more and 2 or result
