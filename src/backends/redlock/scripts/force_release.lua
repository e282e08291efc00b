-- Withdraws the vote on behalf of an operator and notifies its holder. To be run on every server.
--  KEYS[1] head   ARGV[1] prefix of the notification channels   ARGV[2] name of the lock
-- Returns 1 withdrawn   0 no member had it
local head = redis.call('GET', KEYS[1])
local member, token, client = string.match(head or '', '^R (%S+) %d+ %d+ (%d+) %S (%S+) ')
local left = member and redis.call('PTTL', KEYS[1]) or 0
-- -1: the key has no expiry any more (PERSIST).
if left <= 60000 and left ~= -1 then
  return 0
end
redis.call('SET', KEYS[1], 'T ' .. token .. ' -', 'PX', 60000)
redis.call('PUBLISH', ARGV[1] .. client, 't ' .. member .. ' ' .. ARGV[2])
return 1
