-- Withdraws the vote of an acquisition, if it still has it, and notifies the first waiting client.
--  KEYS[1] head   KEYS[2] wake list
--  ARGV[1] head of the free lock: 'T', its token (0: none was chosen) and the member
--  ARGV[2] prefix of the head if nothing has changed since the vote and no client waits;
--          '-': the attempt failed, so no client is notified
--  ARGV[3] '-', or the client that does not wait any more
-- Returns 1 withdrawn   2 withdrawn, and a client was notified
--         0 another member has the vote, or none   3 no member has it, and this one had it last
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
-- If there is no memory for the last token, the head is deleted, so that the vote is withdrawn in
-- any case. The last token is kept for 60 s.
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
