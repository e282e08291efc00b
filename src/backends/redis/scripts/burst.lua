-- Several acquisitions and releases of locks that nobody else wants, in one call. What is not that
-- easy is left as it is, for its own script.
--   KEYS    for each r and s the head; for each a the head, and the plain key of the same name: also
--           who gives back what it takes again may come when its time is over, and a barging lock is
--           there
--   ARGV[1] for each word a letter, and its length in two bytes, the high one first
--           t  for how long the heads live that come after it, in ms
--           a  acquires: how the head goes on after the new token
--           b  the a after it gives this back before, in one step or not at all: how the head begins
--              if this is the one holder
--           r  gives back; likewise
--           s  the same for what may outlive its release by more than a minute
--   ARGV[2] the words, one after the other: each would take the server longer than a piece of one
-- REQUIRES: no lock twice, and no a before a t.
-- Returns for each a, r and s: a token, granted   1 given back   0 nothing was done
local byte, sub, find, match, try = string.byte, string.sub, string.find, string.match, redis.pcall
local values = redis.call('MGET', unpack(KEYS))
local time = redis.call('TIME')
local now = time[1] .. sub('000000' .. time[2], -6)
local micros = tonumber(now)
local a, b, r, t, T, space = 97, 98, 114, 116, 84, 32
local kinds, words, answers = ARGV[1], ARGV[2], {}
local key, from, at = 1, 1, 0
local needed, till, before
for n = 1, #kinds, 3 do
  local kind, high, low = byte(kinds, n, n + 2)
  local to = from + 256 * high + low
  local said = sub(words, from, to - 1)
  from = to
  if kind == t then
    -- A little longer than it has to be, so that whoever takes it soon after need not say how long:
    -- that would take as long as all the rest of it.
    local end_at = tonumber(sub(now, 1, -4)) + said
    local more = math.min(1000, math.floor((said - 60000) / 16))
    needed, till = string.format('%.0f', end_at), string.format('%.0f', end_at + more)
  elseif kind == b then
    before = said
  else
    local head, answer = values[key], 0
    if kind ~= a then
      local is_done = head and find(head, said, 1, true) == 1
      if is_done and kind == r then
        -- The rest of it may stay.
        is_done = try('SETRANGE', KEYS[key], '0', 'T') == #head
      elseif is_done then
        is_done = try('SET', KEYS[key], 'T' .. sub(said, 2), 'PX', '60000').ok
      end
      answer = is_done and 1 or 0
      key = key + 1
    else
      local is_ready
      if before then
        is_ready = head and find(head, before, 1, true) == 1
      else
        is_ready = not head or byte(head) == T
      end
      if is_ready and not values[key + 1] then
        local token, digits = micros, now
        -- As text, if both are of sixteen digits.
        if head and (byte(head, 19) ~= space or sub(head, 3, 18) >= now) then
          local last = tonumber(match(head, '^%u (%d+)'))
          if last >= micros then
            token = last + 1
            digits = string.format('%.0f', token)
          end
        end
        local fresh = 'H ' .. digits .. said
        -- A space before its end: a free head of the short form has none there.
        if head and #head == #fresh + 14 and byte(head, -14) == space and
            sub(head, -13) >= needed then
          answer = try('SETRANGE', KEYS[key], '0', fresh) == #head and token or 0
        else
          fresh = fresh .. ' ' .. till
          local done
          if head then
            done = try('SET', KEYS[key], fresh, 'PXAT', till)
          else
            -- What is of another type looks like nothing.
            done = try('SET', KEYS[key], fresh, 'PXAT', till, 'NX')
          end
          answer = done and done.ok and token or 0
        end
      end
      before = nil
      key = key + 2
    end
    at = at + 1
    answers[at] = answer
  end
end
return answers
