-- Renews a vote, or changes its TTL.
--  KEYS[1] head   ARGV[1] member   ARGV[2] TTL in ms
--  ARGV[3] 0: renewal, which never shortens; else the number of the TTL change, applied once, in order
-- Returns 1 the member has the vote   0 another member has it   3 no member has it
local memory = 60000
local head = redis.call('GET', KEYS[1])
local member, _, seq, token, label = string.match(head or '', '^R (%S+) (%d+) (%d+) (%d+) (.*)$')
local left = member and redis.call('PTTL', KEYS[1]) - memory or 0
if left == -1 - memory then
  -- The key has no expiry any more (PERSIST): the vote stays for one minute.
  left = memory
  redis.call('PEXPIRE', KEYS[1], left + memory)
end
if member ~= ARGV[1] or left <= 0 then
  return left > 0 and 0 or 3
end
if ARGV[3] == '0' then
  if left < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2] + memory)
  end
elseif tonumber(ARGV[3]) > tonumber(seq) then
  redis.call('SET', KEYS[1], table.concat({'R', member, ARGV[2], ARGV[3], token, label}, ' '),
    'PX', ARGV[2] + memory)
end
return 1
