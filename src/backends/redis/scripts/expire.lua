-- Removes expired members, and grants the waiters that this admits.
--  KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue   KEYS[5] last token
-- Returns ms until the next member expires   0 more to do at once   -1 no members
local head = redis.call('GET', KEYS[1])
if not head or string.sub(head, 1, 1) == 'T' then
  return -1
end
if string.sub(head, 1, 1) == 'H' then
  local left = redis.call('PTTL', KEYS[1])
  return left == -1 and 60000 or math.max(1, left - 60000)
end

--@include lock.lua

load_lock(head)
-- An earlier call may have left some waiters.
lock.changed = true
grant_waiters()
save_lock()
return ms_to_next_expiry()
