-- What an operator does: takes the lock from all who hold it, tells them, and lets in the next.
--   KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue
--   KEYS[5] last token; may be left out by hand
-- Returns how many held it.
local head = redis.call('GET', KEYS[1])
local form = head and string.sub(head, 1, 1)
if not form or form == 'T' then
  return 0
end

--@include lock.lua

open(head)
redis.call('HDEL', KEYS[2], '')
local taken = 0
local all = redis.call('HGETALL', KEYS[2])
for at = 1, #all, 2 do
  if not redis.call('ZSCORE', KEYS[4], all[at]) then
    local _, _, requests, client = parse(all[at + 1])
    remove(all[at])
    local name = string.match(KEYS[1], '^{[^:]*:(.*)}$')
    tell(client, table.concat({'t', all[at], requests, name}, ' '))
    taken = taken + 1
  end
end
serve()
save()
return taken
