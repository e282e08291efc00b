-- Withdraws a request: removes it from the queue, cancels its upgrade, or handles its grant.
--  KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue   KEYS[5] last token
--  ARGV[1] member   ARGV[2] request, or * for all requests of the member, held or waiting
--  ARGV[3] keep: report an earlier grant and keep the hold; drop: release it
-- Returns {0} not in the queue any more, or never was
--         {1, token, 0, count} granted before
local head = redis.call('GET', KEYS[1])
local form = head and string.sub(head, 1, 1)
if not form or form == 'T' then
  return {0}
end

--@include lock.lua

if form == 'H' then
  local token, member, requests = string.match(head, '^H (%d+) (%S+)%.(%d+) ')
  if member ~= ARGV[1] then
    return {0}
  end
  if ARGV[3] == 'keep' then
    return has_request(requests, ARGV[2]) and {1, tonumber(token), 0, 1} or {0}
  end
end
load_lock(head)
local member, request = ARGV[1], ARGV[2]
local detail = redis.call('HGET', KEYS[2], member)
local answer = {0}
if detail then
  local held, token, requests, client, label = parse(detail)
  local is_waiting = redis.call('ZSCORE', KEYS[4], member)
  if request == '*' or (is_waiting and requests == request) then
    remove(member)
  elseif is_waiting then
  -- Another request of the same member waits; it stays.
  elseif lock.upgrader == member and lock.upgrade == request then
    lock.upgrader, lock.upgrade, lock.changed = '-', '0', true
  elseif has_request(requests, request) or has_request(requests, 'u' .. request) then
    local _, commas = string.gsub(requests, ',', '')
    answer = {1, tonumber(token), 0, commas + 1}
    local rest = without_request((string.gsub(requests, ',r%d+', '')), request)
    if ARGV[3] == 'drop' and has_request(requests, 'u' .. request) then
      -- The upgraded hold becomes a shared one again.
      held, lock.mode, lock.changed = 'S', 'S', true
    end
    if ARGV[3] == 'drop' and rest == '' then
      remove(member)
    elseif ARGV[3] == 'drop' then
      redis.call('HDEL', KEYS[2], '')
      redis.call('HSET', KEYS[2], member, table.concat({held, token, rest, client, label}, ' '))
    end
  end
end
grant_waiters()
save_lock()
return answer
