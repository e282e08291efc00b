-- A lock as a table, for the scripts that name this file. Record forms:
-- docs/reference/redis_keys.md. Not a script by itself: the build puts it where they say so. Before it they have read the head.
--   KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue   KEYS[5] last token

-- Time in ms that a head outlives its lock, so that a retry of the last release finds its result.
local memory = 60000
local served_at_once = 1000
local lock

-- Numbers up to 2^53 as digits; Lua would write 1.79e+15. To write one takes as long as asking Redis
-- something, so those that were read are remembered.
local digits_of = {}
local function whole(number)
  local digits = digits_of[number]
  if not digits then
    digits = string.format('%.0f', number)
    digits_of[number] = digits
  end
  return digits
end

local function number_of(digits)
  local number = tonumber(digits)
  digits_of[number] = digits
  return number
end

local time = redis.call('TIME')
local micros = number_of(time[1] .. string.sub('000000' .. time[2], -6))
local now = number_of(string.sub(whole(micros), 1, -4))

-- want, token (of a waiter: its place when it came), requests, client, label
local function parse(detail)
  return string.match(detail, '^(%S+) (%S+) (%S+) (%S+) (.*)$')
end

local function has(requests, request)
  return string.find(',' .. requests .. ',', ',' .. request .. ',', 1, true) ~= nil
end

-- The requests without this one, or without one that upgraded it; nil if there is neither. An
-- upgrade goes first: the share that was upgraded is what stays.
local function without(requests, request)
  local all = ',' .. requests .. ','
  local from, to = string.find(all, ',u%d+,')
  if not from then
    from, to = string.find(all, ',' .. request .. ',', 1, true)
  end
  if not from then
    return nil
  end
  return string.sub(string.sub(all, 1, from) .. string.sub(all, to + 1), 2, -2)
end

-- Records the largest token that was issued, for locks whose heads have expired. MGET, because a key
-- of another type must not stop a script that has written already.
local function record_token(token)
  if KEYS[5] and token > tonumber(redis.call('MGET', KEYS[5])[1] or 0) then
    redis.call('SET', KEYS[5], whole(token))
  end
end

local function next_token()
  return math.max(micros, lock.token + 1)
end

-- Can it be granted beside those who hold?
local function admits(want)
  if want == 'X' then
    return lock.used == 0
  end
  if want == 'S' then
    return lock.mode ~= 'X'
  end
  return lock.used + tonumber(string.sub(want, 2)) <= tonumber(string.sub(lock.kind, 2))
end

-- One holder more (by = 1) or less (by = -1).
local function count(want, by)
  lock.used = lock.used + by * (tonumber(string.sub(want, 2)) or 1)
  if lock.used == 0 then
    lock.mode = '-'
  elseif by > 0 then
    lock.mode = string.sub(want, 1, 1)
  end
end

-- All keys of the lock live as long as its members, and are never shortened by one of them.
local function keep(expiry)
  if expiry > lock.till then
    lock.till = expiry + (expiry - now)
    for key = 2, 4 do
      redis.call('PEXPIREAT', KEYS[key], whole(lock.till + memory))
    end
  end
end

local function add(member, detail, expiry)
  redis.call('HSET', KEYS[2], member, detail)
  redis.call('ZADD', KEYS[3], whole(expiry), member)
end

local function forget(member)
  redis.call('HDEL', KEYS[2], member)
  redis.call('ZREM', KEYS[3], member)
  lock.changed, lock.is_written = true, true
end

-- Takes out one that holds.
local function remove_holder(member, want)
  forget(member)
  count(want, -1)
  if lock.upgrader == member then
    lock.upgrader, lock.upgrade = '-', '0'
  end
end

-- Takes a member out, whether it holds or waits.
local function remove(member)
  local detail = redis.call('HGET', KEYS[2], member)
  if redis.call('ZREM', KEYS[4], member) == 0 and detail then
    remove_holder(member, (parse(detail)))
  else
    forget(member)
  end
end

-- Reads the head into `lock`, and takes out whoever's time is over. A lock that is free, or has one
-- holder only, becomes one of this form.
local function open(head, kind)
  lock = {kind = kind, token = 0, ticket = 0, mode = '-', used = 0, upgrader = '-', upgrade = '0',
          till = 0, last = '-', changed = false, is_written = false, has_dead = false}
  local form = head and string.sub(head, 1, 1)
  if form == 'T' then
    local token, last = string.match(head, '^T (%d+) (%S+)')
    lock.token, lock.last = number_of(token), last
  elseif form == 'H' then
    local token, member, request, its_kind, want, rest =
      string.match(head, '^H (%d+) (%S+)%.(%d+) (%S+) (%S+) (.*)$')
    local left = redis.call('PTTL', KEYS[1]) - memory
    if left == -1 - memory then
      -- Somebody made the key persist (PERSIST, RESTORE): it has a minute, and not for ever.
      left = memory
    end
    lock.token = number_of(token)
    if left > 0 then
      lock.kind = its_kind
      count(want, 1)
      add(member, table.concat({want, token, request, rest}, ' '), now + left)
      keep(now + left)
    end
  elseif form == 'F' then
    local its_kind, token, ticket, mode, used, upgrader, upgrade, till, last =
      string.match(head, '^F (%S+) (%d+) (%d+) (%S) (%d+) (%S+) (%d+) (%d+) (%S+)$')
    lock.kind, lock.token, lock.ticket = its_kind, number_of(token), number_of(ticket)
    lock.mode, lock.used, lock.upgrader, lock.upgrade = mode, number_of(used), upgrader, upgrade
    lock.till, lock.last = number_of(till), last
    lock.till_before = lock.till
    lock.has_dead = true
    for _ = 1, 10 do
      local dead = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', whole(now), 'LIMIT', '0', '100')
      for _, member in ipairs(dead) do
        remove(member)
      end
      if #dead < 100 then
        lock.has_dead = false
        break
      end
    end
    if lock.used == 0 then
      -- Nobody could be told when it came free: perhaps somebody listens again.
      lock.changed = true
    end
    if lock.changed and redis.call('EXISTS', KEYS[2]) == 0 then
      lock.kind, lock.till = kind or its_kind, 0
    end
  elseif form then
    error({err = 'TENURE ' .. KEYS[1] .. ' holds something that is no lock'})
  end
  lock.token_before = lock.token
end

local function save()
  if lock.token > lock.token_before then
    record_token(lock.token)
  end
  if lock.used == 0 and redis.call('EXISTS', KEYS[2]) == 0 then
    redis.call('SET', KEYS[1], 'T ' .. whole(lock.token) .. ' ' .. lock.last, 'PX', memory)
    return
  end
  local head = table.concat({'F', lock.kind, whole(lock.token), whole(lock.ticket), lock.mode,
    whole(lock.used), lock.upgrader, lock.upgrade, whole(lock.till), lock.last}, ' ')
  if lock.till == lock.till_before then
    redis.call('SET', KEYS[1], head, 'KEEPTTL')
  else
    redis.call('SET', KEYS[1], head, 'PX', whole(lock.till - now + memory))
  end
end

-- How many heard it: 0 says that the client is gone, or not connected at the moment.
local function tell(client, words)
  local channel = string.match(KEYS[1], '^{([^:]*):') .. ':wake:' .. client
  if string.byte(client) == 64 then
    -- An '@', so this is a cluster: what is published reaches all nodes, but those are counted who
    -- heard it here. So nobody listens to this channel but here.
    channel = channel .. ':' .. redis.call('CLUSTER', 'MYID')
  end
  return redis.call('PUBLISH', channel, words)
end

-- Makes the one holder that is left, who shares, hold alone. Returns its token if it is the caller.
local function upgrade(caller)
  local member, request = lock.upgrader, lock.upgrade
  local _, _, requests, client, label = parse(redis.call('HGET', KEYS[2], member))
  lock.token = next_token()
  local token = whole(lock.token)
  redis.call('HSET', KEYS[2], member,
    table.concat({'X', token, requests .. ',u' .. request, client, label}, ' '))
  lock.mode, lock.upgrader, lock.upgrade = 'X', '-', '0'
  if member == caller then
    return token
  end
  tell(client, table.concat({'g', member, request, token, '1'}, ' '))
end

-- Lets in whoever may go, in order, and tells them. Who cannot be told is passed over and keeps his
-- place. Returns the token of the caller if that is one of them.
local function serve(caller)
  if not lock.changed then
    return nil
  end
  if not lock.is_written then
    -- Before anything is told: from here on Redis does not refuse a write for want of memory.
    redis.call('HDEL', KEYS[2], '')
  end
  if lock.upgrader ~= '-' then
    return lock.used == 1 and upgrade(caller) or nil
  end
  local answer
  local deaf, seen, step = 0, 0, 0
  while seen < served_at_once do
    local members = redis.call('ZRANGE', KEYS[4], deaf, deaf + step)
    if #members == 0 then
      return answer
    end
    for _, member in ipairs(members) do
      local want, place, requests, client, label = parse(redis.call('HGET', KEYS[2], member))
      local token = next_token()
      local words = table.concat({'g', member, requests, whole(token), place}, ' ')
      if lock.has_dead and tonumber(redis.call('ZSCORE', KEYS[3], member)) <= now then
        -- One of those that open() left.
        remove(member)
      elseif not admits(want) then
        return answer
      elseif member ~= caller and tell(client, words) == 0 then
        deaf = deaf + 1
      else
        lock.token = token
        redis.call('ZREM', KEYS[4], member)
        redis.call('HSET', KEYS[2], member,
          table.concat({want, whole(token), requests, client, label}, ' '))
        count(want, 1)
        if member == caller then
          answer = whole(token)
        end
        if want == 'X' then
          return answer
        end
      end
    end
    seen, step = seen + #members, 99
  end
  lock.more = true
  return answer
end

-- Until somebody's time is over, if nobody renews it; 0: there is more to serve at once.
local function until_next()
  if lock.more then
    return 0
  end
  local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
  return first[2] and math.max(1, tonumber(first[2]) - now) or -1
end
