-- Several acquisitions and releases of locks that nobody else wants, in one call. What is not that
-- easy is left as it is, for its own script.
--   KEYS    for each a, r and s the head; then for each a the plain key of the same name: also who
--           gives back what it takes again may come when its time is over, and a barging lock is
--           there; then the last token
--   ARGV[1] for each word a letter
--           t  for how long the heads live that come after it, in ms
--           c  how they go on after member.request
--           a  acquires: member.request
--           b  the a after it gives this back before, in one step or not at all: member.request of
--              the one holder, and a space
--           r  gives back; likewise
--           s  the same for what may outlive its release by more than a minute
--   ARGV[2] how long each is, as struct.unpack has it
--   ARGV[3] the words, one after the other: each would take the server longer than a piece of one
--   ARGV[4] how many of the KEYS are heads
-- REQUIRES: no lock twice, a c after each t, and no a before these.
-- Returns a token: all is done, and whoever acquires was granted with this one
--         or a list: that token, and for each a, r and s
--           1 done, as above   0 nothing was done   a token: granted with this one
-- What takes time here is to call something and to make a string, by its length: hence the form of
-- it all.
local byte, sub, find, match, try = string.byte, string.sub, string.find, string.match, redis.pcall
local keys, heads, odd, at = KEYS, tonumber(ARGV[4]), nil, 0
-- The last token, then the heads.
local values = redis.call('MGET', keys[#keys], unpack(keys, 1, heads))
local largest, issued = tonumber(values[1] or 0), 0
local is_barged = heads + 1 < #keys and
  redis.call('EXISTS', unpack(keys, heads + 1, #keys - 1)) > 0
local time = redis.call('TIME')
local now = time[2]
if #now < 6 then
  now = sub('00000' .. now, -6)
end
now = time[1] .. now
local micros = tonumber(now)
local held, free = 'H ' .. now .. ' ', 'T ' .. now
-- Where member.request begins after a token of sixteen digits. What has another is not understood.
local who = 20
local till, tail, before
local a, b, c, r, s, H, T = 97, 98, 99, 114, 115, 72, 84
local letters, words = {byte(ARGV[1], 1, -1)}, {struct.unpack(ARGV[2], ARGV[3])}
for n = 1, #letters do
  local letter, said = letters[n], words[n]
  if letter == r or letter == s then
    at = at + 1
    local head = values[at + 1]
    local is_done = head and byte(head) == H and find(head, said, who, true) == who
    if is_done and letter == r then
      -- The rest of it may stay.
      is_done = try('SETRANGE', keys[at], '0', 'T') == #head
    elseif is_done then
      is_done = try('SET', keys[at], 'T' .. sub(head, 2, who - 1) .. said, 'PX', '60000').ok
    end
    if not is_done then
      odd = odd or {}
      odd[at] = 0
    end
  elseif letter == a then
    at = at + 1
    local head, answer = values[at + 1], 0
    local is_ready = not head or byte(head) == T
    if before then
      is_ready = head and byte(head) == H and find(head, before, who, true) == who
    end
    if head and not find(head, '^%u %d') then
      -- Its own script says what is wrong. An error here would hide what is done already.
      is_ready = false
    end
    if is_ready and not is_barged then
      local token, fresh = micros, held .. said
      -- As text: one of fewer digits is smaller whatever they are, and there are never more.
      local last = largest
      if head then
        last = (before or head >= free) and tonumber(match(head, '^%u (%d+)')) or 0
      end
      if last >= micros then
        token = last + 1
        fresh = string.format('H %.0f ', token) .. said
      end
      local size = #fresh
      if head and #head == size + #tail and find(head, tail, size + 1, true) == size + 1 then
        -- Its key lives for as long as this one wants, too.
        answer = try('SETRANGE', keys[at], '0', fresh) == #head and token or 0
      else
        local done
        if head then
          done = try('SET', keys[at], fresh .. tail, 'PXAT', till)
        else
          -- What is of another type looks like nothing.
          done = try('SET', keys[at], fresh .. tail, 'PXAT', till, 'NX')
        end
        answer = done and done.ok and token or 0
      end
    end
    before = nil
    issued = answer > issued and answer or issued
    if answer ~= micros then
      odd = odd or {}
      odd[at] = answer
    end
  elseif letter == b then
    before = said
  elseif letter == c then
    tail = said .. ' ' .. till
  else
    -- A little longer than it has to be, to the end of this second, or of a tenth of one, so that
    -- who takes it soon after need not say how long: that would take as long as all the rest of it.
    local ttl = said - 60000
    local digits = ttl >= 16000 and 10 or ttl >= 1600 and 11 or ttl >= 160 and 12 or 13
    local end_at = (tonumber(sub(now, 1, digits)) + 1) * 10 ^ (13 - digits)
    till = string.format('%.0f', end_at + said)
  end
end
if issued > largest then
  redis.call('SET', keys[#keys], string.format('%.0f', issued))
end
if not odd then
  return micros
end
local answers = {micros}
for n = 1, at do
  answers[n + 1] = odd[n] or 1
end
return answers
