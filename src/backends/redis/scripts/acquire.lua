-- Asks for a lock, and joins its queue if it cannot be had. The same member with the same request
-- again is a retry: it finds what became of the first.
--   KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue
--   KEYS[5] last token   KEYS[6] the plain key of the same name, which a barging lock would use (not
--   in a cluster)
--   ARGV[1] member   ARGV[2] request   ARGV[3] X, S, or P and the permits wanted
--   ARGV[4] L, or P and the capacity   ARGV[5] ttl in ms   ARGV[6] wait or skip
--   ARGV[7] reenter or refuse   ARGV[8] client, a space, and the label
-- Returns a token: granted at once, the usual case
--         {1, token, place, count} granted: place 0 if it did not wait
--         {2, place, ms} queued; ms until somebody's time is over
--         {0} held or waited for, and not to wait
--         {-1, why} would wait for itself   {-2, why} another kind of lock   {-3, why} a limit
local found = redis.call('MGET', KEYS[1], KEYS[5], KEYS[6] or KEYS[1])
local head = found[1]
local form = head and string.sub(head, 1, 1)
local barged = KEYS[6] and found[3] and
  {-2, 'the key ' .. KEYS[6] .. ' exists: a lock with Fairness::barging, or none of ours'}

if not form or form == 'T' then
  -- Nobody holds it, nobody waits.
  if barged then
    return barged
  end
  local at = redis.call('TIME')
  local token = at[1] .. string.sub('000000' .. at[2], -6)
  -- Without a head the last token of this lock is unknown, but no token was larger than this one.
  local largest = tonumber(found[2] or 0)
  local last = largest
  if form then
    last = tonumber(string.match(head, '^T (%d+)')) or
      error({err = 'TENURE ' .. KEYS[1] .. ' holds something that is no lock'})
  end
  if last >= tonumber(token) then
    token = string.format('%.0f', last + 1)
  end
  local value = 'H ' .. token .. ' ' .. ARGV[1] .. '.' .. ARGV[2] .. ' ' .. ARGV[4] .. ' ' ..
    ARGV[3] .. ' ' .. ARGV[8]
  if form then
    redis.call('SET', KEYS[1], value, 'PX', ARGV[5] + 60000)
  elseif not redis.call('SET', KEYS[1], value, 'PX', ARGV[5] + 60000, 'NX') then
    redis.call('GET', KEYS[1])  -- which says that it is of another type
  end
  if tonumber(token) > largest then
    redis.call('SET', KEYS[5], token)
  end
  return tonumber(token)
end
if form == 'H' and ARGV[6] == 'skip' and ARGV[3] == 'X' then
  -- One holds it, and we are not to wait.
  local member = string.match(head, '^H %d+ (%S+)%.%d+ L ')
  if member and member ~= ARGV[1] and redis.call('PTTL', KEYS[1]) > 60000 then
    return {0}
  end
end

--@include lock.lua

open(head, ARGV[4])
if barged and lock.used == 0 then
  save()
  return barged
end
if lock.kind ~= ARGV[4] then
  local is = lock.kind == 'L' and 'a lock' or
    'a semaphore of ' .. string.sub(lock.kind, 2) .. ' permits'
  save()
  return {-2, 'it is ' .. is .. ' at the moment'}
end
local member, request, want = ARGV[1], ARGV[2], ARGV[3]
local expiry = now + ARGV[5]
local may_wait = ARGV[6] == 'wait'
local waiters_max = 100000

local function granted(token, place, requests)
  save()
  local _, commas = string.gsub(requests, ',', '')
  return {1, tonumber(token), tonumber(place), commas + 1}
end

local function queued(place)
  save()
  return {2, tonumber(place), until_next()}
end

local function refused(code, why)
  serve()
  save()
  return {code, why}
end

-- It stands in the queue: a retry, or somebody else's business under the same lease.
local function waits(place, requests)
  if requests ~= request then
    return refused(may_wait and -1 or 0, 'the lease waits for it already')
  end
  redis.call('ZADD', KEYS[3], whole(expiry), member)
  keep(expiry)
  local token = serve(member)
  return token and granted(token, place, requests) or queued(place)
end

-- It shares, and wants to be alone.
local function strengthen()
  if lock.upgrader == member and lock.upgrade == request then
    return queued(1)
  end
  if ARGV[7] ~= 'reenter' then
    return refused(may_wait and -1 or 0, 'the lease shares it; upgrade() makes more of a share')
  end
  if lock.used > 1 then
    if not may_wait then
      return refused(0)
    end
    if lock.upgrader ~= '-' then
      return refused(-1, 'another share is being upgraded, and waits for this one')
    end
  end
  lock.upgrader, lock.upgrade, lock.changed = member, request, true
  local token = serve(member)
  return token and granted(token, 0, ',') or queued(1)
end

-- It holds it already.
local function holds(detail)
  local held, token, requests, client, label = parse(detail)
  if has(requests, request) or has(requests, 'u' .. request) then
    redis.call('ZADD', KEYS[3], whole(expiry), member)
    keep(expiry)
    serve()
    return granted(token, 0, requests)
  end
  if held == 'S' and want == 'X' then
    return strengthen()
  end
  local is_behind = lock.upgrader ~= '-' or redis.call('ZCARD', KEYS[4]) > 0
  if ARGV[7] ~= 'reenter' and (held == 'X' or is_behind) then
    return refused(may_wait and -1 or 0, 'the lease waits for itself')
  end
  if #requests > 4096 then
    return refused(-3, 'the hold is entered too often')
  end
  requests = requests .. ',' .. request
  redis.call('HSET', KEYS[2], member, table.concat({held, token, requests, client, label}, ' '))
  return granted(token, 0, requests)
end

local own = redis.call('HGET', KEYS[2], member)
if own then
  local _, place, requests = parse(own)
  if redis.call('ZSCORE', KEYS[4], member) then
    return waits(place, requests)
  end
  return holds(own)
end

local before = redis.call('ZCARD', KEYS[4])
if before == 0 and lock.upgrader == '-' and admits(want) then
  lock.token = next_token()
  add(member, table.concat({want, whole(lock.token), request, ARGV[8]}, ' '), expiry)
  count(want, 1)
  keep(expiry)
  return granted(lock.token, 0, request)
end
if not may_wait then
  return refused(0)
end
if before >= waiters_max then
  return refused(-3, before .. ' wait for it already')
end
lock.ticket = lock.ticket + 1
add(member, table.concat({want, whole(before + 1), request, ARGV[8]}, ' '), expiry)
redis.call('ZADD', KEYS[4], whole(lock.ticket), member)
keep(expiry)
if before == 0 then
  redis.call('PEXPIREAT', KEYS[4], whole(lock.till + memory))
end
local token = serve(member)
return token and granted(token, before + 1, request) or queued(before + 1)
