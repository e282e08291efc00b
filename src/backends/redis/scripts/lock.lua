-- Common part of the scripts: reads the record of a lock into the table `lock`, changes it, and
-- writes it back. The build inserts this text where a script includes it (cmake/redis.cmake);
-- before that the script has read the head. Record forms: docs/reference/redis_keys.md.
--  KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue   KEYS[5] last token

-- Time in ms that a head outlives its lock, so that a retry of the last release finds its result.
local record_ttl_ms = 60000
-- Maximum number of grants in one call, to bound the time that the script blocks the server.
local grants_per_call_max = 1000
local lock

-- Formats integers up to 2^53 as digits; Lua would write 1.79e+15. Formatting costs as much as a
-- Redis call, so the digits of numbers that were parsed are cached.
local digits_of = {}
local function to_digits(number)
  local digits = digits_of[number]
  if not digits then
    digits = string.format('%.0f', number)
    digits_of[number] = digits
  end
  return digits
end

local function to_number(digits)
  local number = tonumber(digits)
  digits_of[number] = digits
  return number
end

local time = redis.call('TIME')
local micros = to_number(time[1] .. string.sub('000000' .. time[2], -6))
local now = to_number(string.sub(to_digits(micros), 1, -4))

-- Fields of a member's detail: want, token (of a waiter: its position when it joined the queue),
-- requests, client, label.
local function parse(detail)
  return string.match(detail, '^(%S+) (%S+) (%S+) (%S+) (.*)$')
end

-- Whether a comma-separated list of requests contains one of them.
local function has_request(requests, request)
  return string.find(',' .. requests .. ',', ',' .. request .. ',', 1, true) ~= nil
end

-- Removes a request from the list; nil if it is not there. If the hold was upgraded, the mark of
-- the upgrade is removed first, and the shared hold stays.
local function without_request(requests, request)
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

-- Records the largest token issued, for locks whose heads have expired. MGET, because a key of
-- another type must not stop a script that has already written.
local function record_token(token)
  if KEYS[5] and token > tonumber(redis.call('MGET', KEYS[5])[1] or 0) then
    redis.call('SET', KEYS[5], to_digits(token))
  end
end

-- Tokens are the time in µs, or the last token + 1 if the clock has stepped back.
local function next_token()
  return math.max(micros, lock.token + 1)
end

-- Whether a request can be granted beside the current holders.
local function admits(want)
  if want == 'X' then
    return lock.used == 0
  end
  if want == 'S' then
    return lock.mode ~= 'X'
  end
  return lock.used + tonumber(string.sub(want, 2)) <= tonumber(string.sub(lock.kind, 2))
end

-- Counts one holder more (by = 1) or less (by = -1).
local function count_holder(want, by)
  lock.used = lock.used + by * (tonumber(string.sub(want, 2)) or 1)
  if lock.used == 0 then
    lock.mode = '-'
  elseif by > 0 then
    lock.mode = string.sub(want, 1, 1)
  end
end

-- Extends the expiry of the lock's keys to that of a member. The new time is ahead by the same span
-- again, so that not every renewal has to write it.
local function extend_keys(expiry)
  if expiry > lock.till then
    lock.till = expiry + (expiry - now)
    for key = 2, 4 do
      redis.call('PEXPIREAT', KEYS[key], to_digits(lock.till + record_ttl_ms))
    end
  end
end

-- Adds a member.
local function add(member, detail, expiry)
  redis.call('HSET', KEYS[2], member, detail)
  redis.call('ZADD', KEYS[3], to_digits(expiry), member)
end

-- Removes a member from the record.
local function erase_member(member)
  redis.call('HDEL', KEYS[2], member)
  redis.call('ZREM', KEYS[3], member)
  lock.changed, lock.is_written = true, true
end

-- Removes a holder.
local function remove_holder(member, want)
  erase_member(member)
  count_holder(want, -1)
  if lock.upgrader == member then
    lock.upgrader, lock.upgrade = '-', '0'
  end
end

-- Removes a member, whether it holds or waits.
local function remove(member)
  local detail = redis.call('HGET', KEYS[2], member)
  if redis.call('ZREM', KEYS[4], member) == 0 and detail then
    remove_holder(member, (parse(detail)))
  else
    erase_member(member)
  end
end

-- Reads the head into `lock`, and removes expired members. A record of the form T or H becomes one
-- of the form F.
local function load_lock(head, kind)
  lock = {kind = kind, token = 0, ticket = 0, mode = '-', used = 0, upgrader = '-', upgrade = '0',
          till = 0, last = '-', changed = false, is_written = false, has_expired = false}
  local form = head and string.sub(head, 1, 1)
  if form == 'T' then
    local token, last = string.match(head, '^T (%d+) (%S+)')
    lock.token, lock.last = to_number(token), last
  elseif form == 'H' then
    local token, member, request, its_kind, want, rest =
      string.match(head, '^H (%d+) (%S+)%.(%d+) (%S+) (%S+) (.*)$')
    local left = redis.call('PTTL', KEYS[1]) - record_ttl_ms
    if left == -1 - record_ttl_ms then
      -- The key has no expiry any more (PERSIST, RESTORE): the holder keeps the lock for one
      -- minute.
      left = record_ttl_ms
    end
    lock.token = to_number(token)
    if left > 0 then
      lock.kind = its_kind
      count_holder(want, 1)
      add(member, table.concat({want, token, request, rest}, ' '), now + left)
      extend_keys(now + left)
    end
  elseif form == 'F' then
    local its_kind, token, ticket, mode, used, upgrader, upgrade, till, last =
      string.match(head, '^F (%S+) (%d+) (%d+) (%S) (%d+) (%S+) (%d+) (%d+) (%S+)$')
    lock.kind, lock.token, lock.ticket = its_kind, to_number(token), to_number(ticket)
    lock.mode, lock.used, lock.upgrader, lock.upgrade = mode, to_number(used), upgrader, upgrade
    lock.till, lock.last = to_number(till), last
    lock.till_before = lock.till
    lock.has_expired = true
    -- At most 1,000 members in each call; has_expired reports that some are left.
    for _ = 1, 10 do
      local expired = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', to_digits(now),
        'LIMIT', '0', '100')
      for _, member in ipairs(expired) do
        remove(member)
      end
      if #expired < 100 then
        lock.has_expired = false
        break
      end
    end
    if lock.used == 0 then
      -- No waiter could be notified when the lock became free; one may be connected again.
      lock.changed = true
    end
    if lock.changed and redis.call('EXISTS', KEYS[2]) == 0 then
      lock.kind, lock.till = kind or its_kind, 0
    end
  elseif form then
    error({err = 'TENURE ' .. KEYS[1] .. ' holds a value that is not a lock'})
  end
  lock.token_before = lock.token
end

-- Writes the head, and the last token if it has changed.
local function save_lock()
  if lock.token > lock.token_before then
    record_token(lock.token)
  end
  if lock.used == 0 and redis.call('EXISTS', KEYS[2]) == 0 then
    redis.call('SET', KEYS[1], 'T ' .. to_digits(lock.token) .. ' ' .. lock.last,
      'PX', record_ttl_ms)
    return
  end
  local head = table.concat({'F', lock.kind, to_digits(lock.token), to_digits(lock.ticket),
    lock.mode, to_digits(lock.used), lock.upgrader, lock.upgrade, to_digits(lock.till), lock.last},
    ' ')
  if lock.till == lock.till_before then
    redis.call('SET', KEYS[1], head, 'KEEPTTL')
  else
    redis.call('SET', KEYS[1], head, 'PX', to_digits(lock.till - now + record_ttl_ms))
  end
end

-- Publishes a message to a client. Returns the number of receivers; 0: the client is gone, or not
-- connected at the moment.
local function notify(client, message)
  local channel = string.match(KEYS[1], '^{([^:]*):') .. ':wake:' .. client
  if string.byte(client) == 64 then
    -- '@': cluster mode. PUBLISH reaches all nodes but returns the number of receivers on this node
    -- only, so clients subscribe to the channel with the node's id on this node only.
    channel = channel .. ':' .. redis.call('CLUSTER', 'MYID')
  end
  return redis.call('PUBLISH', channel, message)
end

-- Upgrades the only remaining shared holder to exclusive. Returns its token if it is the caller.
local function upgrade(caller)
  local member, request = lock.upgrader, lock.upgrade
  local _, _, requests, client, label = parse(redis.call('HGET', KEYS[2], member))
  lock.token = next_token()
  local token = to_digits(lock.token)
  redis.call('HSET', KEYS[2], member,
    table.concat({'X', token, requests .. ',u' .. request, client, label}, ' '))
  lock.mode, lock.upgrader, lock.upgrade = 'X', '-', '0'
  if member == caller then
    return token
  end
  notify(client, table.concat({'g', member, request, token, '1'}, ' '))
end

-- Grants waiters in order and notifies them. A waiter that cannot be notified is skipped and keeps
-- its position. Returns the caller's token if the caller is granted.
local function grant_waiters(caller)
  if not lock.changed then
    return nil
  end
  if not lock.is_written then
    -- A first write, before any message: after it Redis does not refuse further writes of this
    -- script for lack of memory.
    redis.call('HDEL', KEYS[2], '')
  end
  if lock.upgrader ~= '-' then
    return lock.used == 1 and upgrade(caller) or nil
  end
  local answer
  local unreachable, examined, step = 0, 0, 0
  while examined < grants_per_call_max do
    local members = redis.call('ZRANGE', KEYS[4], unreachable, unreachable + step)
    if #members == 0 then
      return answer
    end
    for _, member in ipairs(members) do
      local want, place, requests, client, label = parse(redis.call('HGET', KEYS[2], member))
      local token = next_token()
      local message = table.concat({'g', member, requests, to_digits(token), place}, ' ')
      if lock.has_expired and tonumber(redis.call('ZSCORE', KEYS[3], member)) <= now then
        -- An expired member that load_lock() left.
        remove(member)
      elseif not admits(want) then
        return answer
      elseif member ~= caller and notify(client, message) == 0 then
        unreachable = unreachable + 1
      else
        lock.token = token
        redis.call('ZREM', KEYS[4], member)
        redis.call('HSET', KEYS[2], member,
          table.concat({want, to_digits(token), requests, client, label}, ' '))
        count_holder(want, 1)
        if member == caller then
          answer = to_digits(token)
        end
        if want == 'X' then
          return answer
        end
      end
    end
    examined, step = examined + #members, 99
  end
  lock.has_more = true
  return answer
end

-- Time in ms until the next member expires unless it is renewed; 0: more waiters can be granted
-- now; -1: there are no members.
local function ms_to_next_expiry()
  if lock.has_more then
    return 0
  end
  local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
  return first[2] and math.max(1, tonumber(first[2]) - now) or -1
end
