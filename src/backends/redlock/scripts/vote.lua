-- Gives this server's vote to an acquisition, unless another one has it. The same again is a retry.
--   KEYS[1] head   KEYS[2] who is to be woken   KEYS[3] the plain key of the same name
--   ARGV[1] member   ARGV[2] ttl in ms   ARGV[3] the token that all servers are to agree on
--   ARGV[4] '-' (nobody is to be woken yet), client and label, with a space between each
--   ARGV[5] '-' or the client that waits, to be woken   ARGV[6] 'again' if it was refused before
--   ARGV[7] how long the head lives: a free lock remembers its last token for 60 s, as on redis://
--   ARGV[8] not after this time of the server, in µs; 0: whenever
-- Returns now, the time of the server in µs: it has the vote, with that token. The usual case
--         {1, token, now} it has the vote, with another token
--         {0, ms, ttl, now} another has it for so long, of this ttl
--         {-1, now} it came too late, and nothing was done   {-2, why} another kind of lock
-- A vote that arrives late, by a connection that was given up, would stand here for a whole ttl.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local not_after = tonumber(ARGV[8])
if now > not_after and not_after > 0 then
  return {-1, now}
end
local both = redis.call('MGET', KEYS[1], KEYS[3])
local head = both[1]
local form = head and string.sub(head, 1, 1)
local last = 0

if both[2] then
  return {-2, 'the key ' .. KEYS[3] .. ' exists: a lock with Fairness::barging, or none of ours'}
end
-- For how long it is another's, in ms.
local left = 0
if form == 'R' or form == 'H' then
  left = redis.call('PTTL', KEYS[1])
  if left == -1 then
    -- Somebody made it persist (PERSIST, RESTORE): it has a minute.
    left = 120000
    redis.call('PEXPIRE', KEYS[1], left)
  end
  left = left - 60000
end
if form == 'T' then
  last = tonumber(string.match(head, '^T (%d+)'))
elseif form == 'R' then
  local member, ttl, token = string.match(head, '^R (%S+) (%d+) %d+ (%d+) ')
  last = tonumber(token)
  if left > 0 and member == ARGV[1] then
    return {1, last, now}
  elseif left > 0 then
    if ARGV[5] ~= '-' and redis.call('ZCARD', KEYS[2]) < 1000 then
      redis.call('ZADD', KEYS[2], 'NX', string.format('%.0f', now), ARGV[5])
      redis.call('PEXPIRE', KEYS[2], left + 60000)
      -- In the head, too, so that who gives it back need not look for nobody.
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
  return {-2, 'it is a lock of redis:// at the moment'}
elseif form then
  return redis.error_reply('TENURE ' .. KEYS[1] .. ' holds something that is no lock')
end

-- Beyond 10 s the clock of whoever proposes a token is wrong, or ours.
local token, answer = ARGV[3], now
local proposed = tonumber(token)
if proposed <= last or proposed > now + 10000000 or proposed < now - 10000000 then
  local own = math.max(last + 1, math.abs(proposed - now) > 10000000 and now or proposed)
  token, answer = string.format('%.0f', own), {1, own, now}
end
local value = 'R ' .. ARGV[1] .. ' ' .. ARGV[2] .. ' 0 ' .. token .. ' ' .. ARGV[4]
if form then
  redis.call('SET', KEYS[1], value, 'PX', ARGV[7])
elseif not redis.call('SET', KEYS[1], value, 'PX', ARGV[7], 'NX') then
  redis.call('GET', KEYS[1])  -- which says that it is of another type
end
if ARGV[6] == 'again' then
  redis.call('ZREM', KEYS[2], ARGV[5])
end
return answer
