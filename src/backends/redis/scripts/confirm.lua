-- Whether a request holds the lock. Writes nothing, so it works when the memory is full.
--  KEYS[1] head   KEYS[2] members   KEYS[3] expiries   KEYS[4] queue   KEYS[5] last token
--  ARGV[1] member   ARGV[2] request
-- Returns {1, token, 0, count} it holds the lock, as acquire.lua reports   {0} it does not
local detail = redis.call('HGET', KEYS[2], ARGV[1])
if not detail or redis.call('ZSCORE', KEYS[4], ARGV[1]) then
  return {0}
end
local token, requests = string.match(detail, '^%S+ (%d+) (%S+) ')
local all = ',' .. requests .. ','
if string.find(all, ',' .. ARGV[2] .. ',', 1, true) or
    string.find(all, ',u' .. ARGV[2] .. ',', 1, true) then
  local _, commas = string.gsub(requests, ',', '')
  return {1, tonumber(token), 0, commas + 1}
end
return {0}
