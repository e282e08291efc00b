-- Stores the agreed token on a server that voted, so that every later quorum contains a server that
-- knows it.
--  KEYS[1] head   ARGV[1] member   ARGV[2] token
-- Returns 1 stored   0 the vote is gone
local head = redis.call('GET', KEYS[1])
local member, ttl, seq, token, label = string.match(head or '', '^R (%S+) (%d+) (%d+) (%d+) (.*)$')
local left = member == ARGV[1] and redis.call('PTTL', KEYS[1]) or 0
-- -1: the key has no expiry any more (PERSIST), so the vote stays.
if left <= 60000 and left ~= -1 then
  return 0
end
if tonumber(token) < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[1], table.concat({'R', member, ttl, seq, ARGV[2], label}, ' '), 'KEEPTTL')
end
return 1
