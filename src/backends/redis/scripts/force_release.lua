-- Releases all holds on behalf of an operator, notifies the holders, and grants the next waiters.
--  KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue
--  KEYS[5] last token; optional for a call by hand
-- Returns the number of holders.
local head = redis.call('GET', KEYS[1])
local form = head and string.sub(head, 1, 1)
if not form or form == 'T' then
  return 0
end

--@include lock.lua

load_lock(head)
redis.call('HDEL', KEYS[2], '')
local taken = 0
local all = redis.call('HGETALL', KEYS[2])
for at = 1, #all, 2 do
  if not redis.call('ZSCORE', KEYS[4], all[at]) then
    local _, _, requests, client = parse(all[at + 1])
    remove(all[at])
    local name = string.match(KEYS[1], '^{[^:]*:(.*)}$')
    notify(client, table.concat({'t', all[at], requests, name}, ' '))
    taken = taken + 1
  end
end
grant_waiters()
save_lock()
return taken
