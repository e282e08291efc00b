-- Takes out whoever's time is over, and lets in whoever may go then.
--   KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue   KEYS[5] last token
-- Returns ms until somebody's time is over next   0 there is more to do at once   -1 nobody is there
local head = redis.call('GET', KEYS[1])
if not head or string.sub(head, 1, 1) == 'T' then
  return -1
end
if string.sub(head, 1, 1) == 'H' then
  local left = redis.call('PTTL', KEYS[1])
  return left == -1 and 60000 or math.max(1, left - 60000)
end

--@include lock.lua

open(head)
-- Some may have been left for later.
lock.changed = true
serve()
save()
return until_next()
