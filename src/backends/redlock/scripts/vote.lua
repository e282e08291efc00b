-- Gives this server's vote to an acquisition, unless another one has it. The same again is a retry.
--  KEYS[1] head   KEYS[2] plain key of the same name   KEYS[3] wake list, if the client waits
--  ARGV[1] new head: 'R', member, TTL in ms, 0, the proposed token, '-' (no client waits yet), client
--          and label, separated by spaces
--  ARGV[2] proposed token
--  ARGV[3] lifetime of the head: a free lock keeps its last token for 60 s, as with redis://
--  ARGV[4] '-'; '+' and the client to notify; '*' and the client, if it was refused before
--  ARGV[5] deadline by the server's clock in µs; 0: none
-- Returns the server's time in µs: the member has the vote with the proposed token
--         {1, token, now} the member has the vote with another token
--         {0, ms, ttl, now} another member has it for ms more, with this TTL
--         {-1, now} after the deadline; nothing was done   {-2, why} another kind of lock
-- The deadline protects against a vote that arrives late over an abandoned connection and would
-- block this server for a whole TTL.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local not_after = tonumber(ARGV[5])
if now > not_after and not_after > 0 then
  return {-1, now}
end
local both = redis.call('MGET', KEYS[1], KEYS[2])
local head = both[1]
local form = head and string.sub(head, 1, 1)
local value, token, waits = ARGV[1], ARGV[2], ARGV[4]
local last = 0

if both[2] then
  return {-2, 'the key ' .. KEYS[2] .. ' exists: a lock with Fairness::barging, or a foreign key'}
end
-- Time in ms for which another member has the vote.
local left = 0
if form == 'R' or form == 'H' then
  left = redis.call('PTTL', KEYS[1])
  if left == -1 then
    -- The key has no expiry any more (PERSIST, RESTORE): the vote stays for one minute.
    left = 120000
    redis.call('PEXPIRE', KEYS[1], left)
  end
  left = left - 60000
end
if form == 'T' then
  last = tonumber(string.match(head, '^T (%d+)'))
elseif form == 'R' then
  local member, ttl, known = string.match(head, '^R (%S+) (%d+) %d+ (%d+) ')
  last = tonumber(known)
  if left > 0 and member == string.match(value, '^R (%S+)') then
    return {1, last, now}
  elseif left > 0 then
    if waits ~= '-' and redis.call('ZCARD', KEYS[3]) < 1000 then
      redis.call('ZADD', KEYS[3], 'NX', string.format('%.0f', now), string.sub(waits, 2))
      redis.call('PEXPIRE', KEYS[3], left + 60000)
      -- Also marked in the head, so that a release without waiters need not read the wake list.
      local before, after = string.match(head, '^(R %S+ %d+ %d+ %d+) %- (.*)$')
      if before then
        redis.call('SET', KEYS[1], before .. ' + ' .. after, 'KEEPTTL')
      end
    end
    return {0, left, tonumber(ttl), now}
  end
elseif form == 'H' and left <= 0 then
  last = tonumber(string.match(head, '^H (%d+)'))
elseif form == 'H' or form == 'F' then
  return {-2, 'the name is used by a lock of redis:// at the moment'}
elseif form then
  return redis.error_reply('TENURE ' .. KEYS[1] .. ' holds a value that is not a lock')
end

-- A proposal that differs by more than 10 s from this clock comes from a wrong clock, or this clock
-- is wrong.
local proposed, answer = tonumber(token), now
if proposed <= last or proposed > now + 10000000 or proposed < now - 10000000 then
  local own = math.max(last + 1, math.abs(proposed - now) > 10000000 and now or proposed)
  local before, after = string.match(value, '^(R %S+ %d+ 0) %d+ (.*)$')
  value, answer = before .. string.format(' %.0f ', own) .. after, {1, own, now}
end
if form then
  redis.call('SET', KEYS[1], value, 'PX', ARGV[3])
elseif not redis.call('SET', KEYS[1], value, 'PX', ARGV[3], 'NX') then
  redis.call('GET', KEYS[1])  -- fails with WRONGTYPE, which names the problem
end
if string.sub(waits, 1, 1) == '*' then
  redis.call('ZREM', KEYS[3], string.sub(waits, 2))
end
return answer
