-- Which acquisition has this server's vote. Writes nothing.
--  KEYS[1] head
-- Returns {member, token, label}, or nothing.
local head = redis.call('GET', KEYS[1])
local member, token, label = string.match(head or '', '^R (%S+) %d+ %d+ (%d+) %S %S+ (.*)$')
local left = member and redis.call('PTTL', KEYS[1]) or 0
-- -1: the key has no expiry any more (PERSIST).
if left > 60000 or left == -1 then
  return {member, token, label}
end
return {}
