-- Several acquisitions and releases of locks that nobody else wants, in one call. What is not that
-- easy is left as it is, for its own script.
--   KEYS    of an acquisition the head and the plain key of the same name, of a release the head
--   ARGV[1] a letter for each: a, r, or R for a release right before an acquisition of the same
--           lock, which is one step then
--   then    of an acquisition: for how long its head lives, how that begins, and how it goes on
--           after the token; of a release: how the head begins if this is the one holder, and what
--           it is afterwards
-- REQUIRES: no lock twice but by R.
-- Returns for each: a token, granted   1 given back   0 nothing was done
local byte, sub, try = string.byte, string.sub, redis.pcall
local values = redis.call('MGET', unpack(KEYS))
local time = redis.call('TIME')
local now = time[1] .. sub('000000' .. time[2], -6)
local micros = tonumber(now)
local kinds, answers = ARGV[1], {}
-- Left: to which acquisition a release is left; it is done by it, or not at all.
local key, word, left = 1, 2, 0
for n = 1, #kinds do
  local head, answer = values[key], 0
  if byte(kinds, n) == 97 then
    -- Behind a release that is to be asked again: so is this, in that order.
    local is_early = byte(kinds, n - 1) == 82 and answers[n - 1] == 0
    if not is_early and not values[key + 1] and (not head or byte(head) == 84) then
      local token, digits = micros, now
      local last = head and tonumber(string.match(head, '^T (%d+)')) or 0
      if last >= token then
        token = last + 1
        digits = string.format('%.0f', token)
      end
      -- NX: what is of another type looks like nothing.
      local done = try('SET', KEYS[key], ARGV[word + 1] .. digits .. ARGV[word + 2],
        'PX', ARGV[word], head and 'XX' or 'NX')
      answer = done and done.ok and token or 0
    end
    if answer == 0 and left == n then
      answers[n - 1] = 0
    end
    key, word = key + 2, word + 3
  else
    local begin = ARGV[word]
    if not head or sub(head, 1, #begin) ~= begin then
      answer = 0
    elseif byte(kinds, n) == 82 and not values[key + 2] then
      values[key + 1], left, answer = ARGV[word + 1], n + 1, 1
    else
      answer = try('SET', KEYS[key], ARGV[word + 1], 'PX', '60000').ok and 1 or 0
    end
    key, word = key + 1, word + 2
  end
  answers[n] = answer
end
return answers
