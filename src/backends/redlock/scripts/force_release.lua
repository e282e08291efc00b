-- What an operator does on every server: takes the vote away and tells whoever had it.
--   KEYS[1] head   ARGV[1] how the channels of wake-ups begin   ARGV[2] the name of the lock
-- Returns 1 taken away   0 nobody had it
local head = redis.call('GET', KEYS[1])
local member, token, client = string.match(head or '', '^R (%S+) %d+ %d+ (%d+) %S (%S+) ')
local left = member and redis.call('PTTL', KEYS[1]) or 0
-- -1: somebody made it persist.
if left <= 60000 and left ~= -1 then
  return 0
end
redis.call('SET', KEYS[1], 'T ' .. token .. ' -', 'PX', 60000)
redis.call('PUBLISH', ARGV[1] .. client, 't ' .. member .. ' ' .. ARGV[2])
return 1
