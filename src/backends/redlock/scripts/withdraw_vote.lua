-- Takes the vote back from an acquisition, if it still has it, and wakes the first who waits.
--   KEYS[1] head   KEYS[2] who is to be woken
--   ARGV[1] the head of a free lock: 'T', its token (0: none was chosen) and the member
--   ARGV[2] how the head begins if nothing has happened since the vote, and nobody waits; '-': it
--           came to nothing, and nobody is to be woken
--   ARGV[3] '-' or the client that does not wait any more
-- Returns 1 given back   2 the same, and somebody was woken
--         0 another has it, or nobody   3 nobody has it, and the last to give it back was this one
if ARGV[3] ~= '-' then
  redis.call('ZREM', KEYS[2], ARGV[3])
end
local head = redis.call('GET', KEYS[1])
if not head then
  return 0
end
local free = ARGV[1]
local is_as_it_was = string.find(head, ARGV[2], 1, true) == 1
if not is_as_it_was then
  local token, member = string.match(free, '^T (%d+) (.*)$')
  if string.sub(head, 1, 1) == 'T' then
    return string.match(head, '^T %d+ (%S+)$') == member and 3 or 0
  end
  local holder, known = string.match(head, '^R (%S+) %d+ %d+ (%d+) ')
  if holder ~= member then
    return 0
  end
  if tonumber(known) > tonumber(token) then
    free = 'T ' .. known .. ' ' .. member
  end
end
-- Where there is no memory for the last token, the vote itself still goes. The last one is known
-- for 60 s.
local kept = redis.pcall('SET', KEYS[1], free, 'PX', '60000')
if kept.err then
  redis.call('DEL', KEYS[1])
end
if is_as_it_was or ARGV[2] == '-' then
  return 1
end
local namespace, name = string.match(KEYS[1], '^{([^:]*):(.*)}$')
for _, client in ipairs(redis.call('ZRANGE', KEYS[2], 0, 9)) do
  redis.call('ZREM', KEYS[2], client)
  if redis.call('PUBLISH', namespace .. ':wake:' .. client, 'f ' .. name) > 0 then
    return 2
  end
end
return 1
