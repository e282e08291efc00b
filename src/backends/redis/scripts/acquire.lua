-- Acquires a lock, or joins its queue. The same member with the same request is a retry: it finds
-- the result of the first call.
--  KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue   KEYS[5] last token
--  KEYS[6] plain key of the same name, used by a barging lock (not in a cluster)
--  ARGV[1] member   ARGV[2] request   ARGV[3] X, S, or P and the number of permits wanted
--  ARGV[4] L, or P and the capacity   ARGV[5] TTL in ms   ARGV[6] wait or skip
--  ARGV[7] reenter or refuse   ARGV[8] client, a space, and the label
-- Returns a token: granted at once, the most frequent case
--         {1, token, position, count} granted: position 0 if it did not wait; count of reentries
--         {2, position, ms} queued; ms until the next member expires
--         {0} not available, and not to wait
--         {-1, why} would wait for itself   {-2, why} another kind of lock   {-3, why} a limit
local found = redis.call('MGET', KEYS[1], KEYS[5], KEYS[6] or KEYS[1])
local head = found[1]
local form = head and string.sub(head, 1, 1)
local barging_conflict = KEYS[6] and found[3] and
  {-2, 'the key ' .. KEYS[6] .. ' exists: a lock with Fairness::barging, or a foreign key'}

if not form or form == 'T' then
  -- Fast path: no holder and no waiter.
  if barging_conflict then
    return barging_conflict
  end
  local at = redis.call('TIME')
  local token = at[1] .. string.sub('000000' .. at[2], -6)
  -- Without a head the last token of this lock is unknown, but no token was larger than this one.
  local largest = tonumber(found[2] or 0)
  local last = largest
  if form then
    last = tonumber(string.match(head, '^T (%d+)')) or
      error({err = 'TENURE ' .. KEYS[1] .. ' holds a value that is not a lock'})
  end
  if last >= tonumber(token) then
    token = string.format('%.0f', last + 1)
  end
  local value = 'H ' .. token .. ' ' .. ARGV[1] .. '.' .. ARGV[2] .. ' ' .. ARGV[4] .. ' ' ..
    ARGV[3] .. ' ' .. ARGV[8]
  if form then
    redis.call('SET', KEYS[1], value, 'PX', ARGV[5] + 60000)
  elseif not redis.call('SET', KEYS[1], value, 'PX', ARGV[5] + 60000, 'NX') then
    redis.call('GET', KEYS[1])  -- fails with WRONGTYPE, which names the problem
  end
  if tonumber(token) > largest then
    redis.call('SET', KEYS[5], token)
  end
  return tonumber(token)
end
-- Fast path of a try: one holder, and the request must not wait.
if form == 'H' and ARGV[6] == 'skip' and ARGV[3] == 'X' then
  local member = string.match(head, '^H %d+ (%S+)%.%d+ L ')
  if member and member ~= ARGV[1] and redis.call('PTTL', KEYS[1]) > 60000 then
    return {0}
  end
end

--@include lock.lua

load_lock(head, ARGV[4])
if barging_conflict and lock.used == 0 then
  save_lock()
  return barging_conflict
end
if lock.kind ~= ARGV[4] then
  local is = lock.kind == 'L' and 'a lock' or
    'a semaphore of ' .. string.sub(lock.kind, 2) .. ' permits'
  save_lock()
  return {-2, 'the name is used by ' .. is .. ' at the moment'}
end
local member, request, want = ARGV[1], ARGV[2], ARGV[3]
local expiry = now + ARGV[5]
local may_wait = ARGV[6] == 'wait'
local waiters_max = 100000

-- Results of the script.
local function granted(token, place, requests)
  save_lock()
  local _, commas = string.gsub(requests, ',', '')
  return {1, tonumber(token), tonumber(place), commas + 1}
end

local function queued(place)
  save_lock()
  return {2, tonumber(place), ms_to_next_expiry()}
end

local function refused(code, why)
  grant_waiters()
  save_lock()
  return {code, why}
end

-- The member is in the queue: either a retry, or another request under the same lease.
local function continue_wait(place, requests)
  if requests ~= request then
    return refused(may_wait and -1 or 0, 'the lease already waits for the lock')
  end
  redis.call('ZADD', KEYS[3], to_digits(expiry), member)
  extend_keys(expiry)
  local token = grant_waiters(member)
  return token and granted(token, place, requests) or queued(place)
end

-- The member holds the lock in shared mode and requests it exclusively.
local function upgrade_hold()
  if lock.upgrader == member and lock.upgrade == request then
    return queued(1)
  end
  if ARGV[7] ~= 'reenter' then
    return refused(may_wait and -1 or 0, 'the lease holds a shared lock; use upgrade()')
  end
  if lock.used > 1 then
    if not may_wait then
      return refused(0)
    end
    if lock.upgrader ~= '-' then
      return refused(-1, 'another shared holder is being upgraded and waits for this one')
    end
  end
  lock.upgrader, lock.upgrade, lock.changed = member, request, true
  local token = grant_waiters(member)
  return token and granted(token, 0, ',') or queued(1)
end

-- The member holds the lock: a retry, an upgrade, or a reentry.
local function continue_hold(detail)
  local held, token, requests, client, label = parse(detail)
  if has_request(requests, request) or has_request(requests, 'u' .. request) then
    redis.call('ZADD', KEYS[3], to_digits(expiry), member)
    extend_keys(expiry)
    grant_waiters()
    return granted(token, 0, requests)
  end
  if held == 'S' and want == 'X' then
    return upgrade_hold()
  end
  local has_waiters = lock.upgrader ~= '-' or redis.call('ZCARD', KEYS[4]) > 0
  if ARGV[7] ~= 'reenter' and (held == 'X' or has_waiters) then
    return refused(may_wait and -1 or 0, 'the lease holds the lock already')
  end
  if #requests > 4096 then
    return refused(-3, 'too many reentries of the hold')
  end
  requests = requests .. ',' .. request
  redis.call('HSET', KEYS[2], member, table.concat({held, token, requests, client, label}, ' '))
  return granted(token, 0, requests)
end

local own = redis.call('HGET', KEYS[2], member)
if own then
  local _, place, requests = parse(own)
  if redis.call('ZSCORE', KEYS[4], member) then
    return continue_wait(place, requests)
  end
  return continue_hold(own)
end

local waiters_count = redis.call('ZCARD', KEYS[4])
if waiters_count == 0 and lock.upgrader == '-' and admits(want) then
  lock.token = next_token()
  add(member, table.concat({want, to_digits(lock.token), request, ARGV[8]}, ' '), expiry)
  count_holder(want, 1)
  extend_keys(expiry)
  return granted(lock.token, 0, request)
end
if not may_wait then
  return refused(0)
end
if waiters_count >= waiters_max then
  return refused(-3, waiters_count .. ' requests are waiting already')
end
lock.ticket = lock.ticket + 1
add(member, table.concat({want, to_digits(waiters_count + 1), request, ARGV[8]}, ' '), expiry)
redis.call('ZADD', KEYS[4], to_digits(lock.ticket), member)
extend_keys(expiry)
if waiters_count == 0 then
  redis.call('PEXPIREAT', KEYS[4], to_digits(lock.till + record_ttl_ms))
end
local token = grant_waiters(member)
return token and granted(token, waiters_count + 1, request) or queued(waiters_count + 1)
