-- Several acquisitions and releases of locks that nobody else wants, in one call. What is not that
-- easy is left as it is, for its own script.
--   ARGV[1] a letter for each: a acquires, r releases, s releases what may outlive its release by
--           more than a minute, b releases and acquires again, in one step or not at all;
--           t is nothing by itself: for how long the heads live that come after it
--   KEYS    the head; of a and b also the plain key of the same name: also a b may come when its time
--           is over, and a barging lock is there
--   then    t: ms   r, s, b: how the head begins if this is the one holder   a, b: how it goes on
--           after the new token
-- REQUIRES: no lock twice, and no a or b before a t.
-- Returns for each but t: a token, granted   1 given back   0 nothing was done
local byte, sub, match, try = string.byte, string.sub, string.match, redis.pcall
local values = redis.call('MGET', unpack(KEYS))
local time = redis.call('TIME')
local now = time[1] .. sub('000000' .. time[2], -6)
local micros = tonumber(now)
local a, b, r, t = 97, 98, 114, 116
local kinds, answers, life = ARGV[1], {}, nil
local key, word, at = 1, 2, 0
for n = 1, #kinds do
  local kind = byte(kinds, n)
  local said, head, answer = ARGV[word], values[key], 0
  word = word + 1
  if kind == t then
    life = said
  else
    local is_asked = kind == a or kind == b
    local is_ready
    if kind == a then
      is_ready = not head or sub(head, 1, 1) == 'T'
    else
      is_ready = head and sub(head, 1, #said) == said
    end
    is_ready = is_ready and not (is_asked and values[key + 1])
    if kind == b then
      said = ARGV[word]
      word = word + 1
    end
    if is_ready and is_asked then
      local token, digits = micros, now
      local last = head and match(head, '^%u (%d+)') or ''
      if #last > #now or #last == #now and last >= now then
        token = last + 1
        digits = string.format('%.0f', token)
      end
      local done
      if head then
        done = try('SET', KEYS[key], 'H ' .. digits .. said, 'PX', life)
      else
        -- What is of another type looks like nothing.
        done = try('SET', KEYS[key], 'H ' .. digits .. said, 'PX', life, 'NX')
      end
      answer = done and done.ok and token or 0
    elseif is_ready and kind == r then
      -- The rest of it may stay.
      answer = type(try('SETRANGE', KEYS[key], '0', 'T')) == 'number' and 1 or 0
    elseif is_ready then
      answer = try('SET', KEYS[key], 'T' .. sub(said, 2), 'PX', '60000').ok and 1 or 0
    end
    key = key + (is_asked and 2 or 1)
    at = at + 1
    answers[at] = answer
  end
end
return answers
