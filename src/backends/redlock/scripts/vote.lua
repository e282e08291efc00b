-- Gives this server's vote to an acquisition, unless another one has it. The same again is a retry.
--   KEYS[1] head   KEYS[2] the plain key of the same name
--   KEYS[3] who is to be woken, if somebody waits
--   ARGV[1] the head that it gets: 'R', member, ttl in ms, 0, the token that all servers are to agree
--           on, '-' (nobody is to be woken yet), client and label, with a space between each
--   ARGV[2] that token
--   ARGV[3] how long the head lives: a free lock remembers its last token for 60 s, as on redis://
--   ARGV[4] '-'; or '+' and the client that waits, to be woken; '*' and it, if it was refused before
--   ARGV[5] not after this time of the server, in µs; 0: whenever
-- Returns now, the time of the server in µs: it has the vote, with that token. The usual case
--         {1, token, now} it has the vote, with another token
--         {0, ms, ttl, now} another has it for so long, of this ttl
--         {-1, now} it came too late, and nothing was done   {-2, why} another kind of lock
-- A vote that arrives late, by a connection that was given up, would stand here for a whole ttl.
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
  return {-2, 'the key ' .. KEYS[2] .. ' exists: a lock with Fairness::barging, or none of ours'}
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
  local member, ttl, known = string.match(head, '^R (%S+) (%d+) %d+ (%d+) ')
  last = tonumber(known)
  if left > 0 and member == string.match(value, '^R (%S+)') then
    return {1, last, now}
  elseif left > 0 then
    if waits ~= '-' and redis.call('ZCARD', KEYS[3]) < 1000 then
      redis.call('ZADD', KEYS[3], 'NX', string.format('%.0f', now), string.sub(waits, 2))
      redis.call('PEXPIRE', KEYS[3], left + 60000)
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
local proposed, answer = tonumber(token), now
if proposed <= last or proposed > now + 10000000 or proposed < now - 10000000 then
  local own = math.max(last + 1, math.abs(proposed - now) > 10000000 and now or proposed)
  local before, after = string.match(value, '^(R %S+ %d+ 0) %d+ (.*)$')
  value, answer = before .. string.format(' %.0f ', own) .. after, {1, own, now}
end
if form then
  redis.call('SET', KEYS[1], value, 'PX', ARGV[3])
elseif not redis.call('SET', KEYS[1], value, 'PX', ARGV[3], 'NX') then
  redis.call('GET', KEYS[1])  -- which says that it is of another type
end
if string.sub(waits, 1, 1) == '*' then
  redis.call('ZREM', KEYS[3], string.sub(waits, 2))
end
return answer
