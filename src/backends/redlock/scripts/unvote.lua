-- Takes the vote back from an acquisition, if it still has it, and wakes the first who waits.
--   KEYS[1] head   KEYS[2] who is to be woken
--   ARGV[1] member   ARGV[2] its token; 0: none was chosen
--   ARGV[3] how the head begins if nothing has happened since the vote, and nobody waits
--   ARGV[4] how the channels of wake-ups begin, or '-': nobody is to be woken
--   ARGV[5] the name of the lock   ARGV[6] '-' or the client that does not wait any more
-- Returns 1 given back   2 the same, and somebody was woken
--         0 another has it, or nobody   3 nobody has it, and the last to give it back was this one
if ARGV[6] ~= '-' then
  redis.call('ZREM', KEYS[2], ARGV[6])
end
local head = redis.call('GET', KEYS[1])
if not head then
  return 0
end
local token = ARGV[2]
local is_as_it_was = string.sub(head, 1, #ARGV[3]) == ARGV[3]
if not is_as_it_was then
  if string.sub(head, 1, 1) == 'T' then
    return string.match(head, '^T %d+ (%S+)$') == ARGV[1] and 3 or 0
  end
  local member, known = string.match(head, '^R (%S+) %d+ %d+ (%d+) ')
  if member ~= ARGV[1] then
    return 0
  end
  token = tonumber(known) < tonumber(token) and token or known
end
-- Where there is no memory for the last token, the vote itself still goes. The last one is known
-- for 60 s.
local kept = redis.pcall('SET', KEYS[1], 'T ' .. token .. ' ' .. ARGV[1], 'PX', '60000')
if kept.err then
  redis.call('DEL', KEYS[1])
end
if is_as_it_was or ARGV[4] == '-' then
  return 1
end
for _, client in ipairs(redis.call('ZRANGE', KEYS[2], 0, 9)) do
  redis.call('ZREM', KEYS[2], client)
  if redis.call('PUBLISH', ARGV[4] .. client, 'f ' .. ARGV[5]) > 0 then
    return 2
  end
end
return 1
