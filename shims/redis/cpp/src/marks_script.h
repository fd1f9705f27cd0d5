// The script that marks, for EVAL: the same text as in every language, so that the server keeps one (spec EPOCH-16 to
// EPOCH-21).
//
// KEYS: the hash of marks. ARGV: epoch and position that should be covered ('' and '0': a new epoch only), period in
// ms, most epochs, digits of an epoch. Answers {word, number of ms to wait, epoch}. Positions are decimal texts in Lua:
// its numbers are exact to 2^53 only.
#ifndef ANTIPODE_REDIS_MARKS_SCRIPT_H_
#define ANTIPODE_REDIS_MARKS_SCRIPT_H_

#include <string_view>

namespace antipode::redis {

inline constexpr std::string_view kMarkScript = R"lua(
local t = {}
for line in string.gmatch(redis.call('INFO', 'replication'), '[^\r\n]+') do
  local k, v = string.match(line, '^([%w_]+):(.*)$')
  if k then t[k] = v end
end

if t.role ~= 'master' then return {'replica', 0, ''} end
local epoch = string.sub(t.master_replid, 1, tonumber(ARGV[5]))
if t.repl_backlog_active ~= '1' then return {'backlog', 0, epoch} end

local function less(a, b) return #a < #b or (#a == #b and a < b) end
local function known(epoch)
  local value = redis.call('HGET', KEYS[1], epoch)
  if value then return string.match(value, '^(%d+) (%d+)') end
end
local clock = redis.call('HGET', KEYS[1], 'clock') or '0 0 -'
local number, marked_at, marked_in = string.match(clock, '^(%d+) (%d+) (%S+)')
number = tonumber(number or '0')
local function up(epoch, position)
  local old, own = known(epoch)
  if old and not less(old, position) then return end
  if not own then number = number + 1 own = string.format('%.0f', number) end
  redis.call('HSET', KEYS[1], epoch, position .. ' ' .. own)
end
local function trim(most)
  local over = redis.call('HLEN', KEYS[1]) - 1 - most
  if over <= 0 then return end
  local all, byage = redis.call('HGETALL', KEYS[1]), {}
  for i = 1, #all, 2 do
    local own = string.match(all[i + 1], '^%d+ (%d+)$')
    if all[i] ~= 'clock' then byage[#byage + 1] = {tonumber(own or '0'), all[i]} end
  end
  table.sort(byage, function(a, b) return a[1] < b[1] end)
  for i = 1, over do redis.call('HDEL', KEYS[1], byage[i][2]) end
end

local function before(position)
  local digits, i = {string.byte(position, 1, -1)}, #position
  while digits[i] == 48 do digits[i] = 57 i = i - 1 end
  digits[i] = digits[i] - 1
  return (string.gsub(string.char(unpack(digits)), '^0+(%d)', '%1'))
end
local old = known(epoch)
if old then
  if ARGV[1] ~= epoch or not less(old, ARGV[2]) then return {'covered', 0, epoch} end
end
local now = redis.call('TIME')
local ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local since = ms - tonumber(marked_at or '0')
if old and marked_in == epoch and since >= 0 and since < tonumber(ARGV[3]) then
  return {'wait', tonumber(ARGV[3]) - since, epoch}
end
up(epoch, t.master_repl_offset)
if t.second_repl_offset and string.sub(t.second_repl_offset, 1, 1) ~= '-' and t.second_repl_offset ~= '0' then
  up(string.sub(t.master_replid2, 1, tonumber(ARGV[5])), before(t.second_repl_offset))
end
redis.call('HSET', KEYS[1], 'clock', string.format('%.0f %.0f %s', number, ms, epoch))
trim(tonumber(ARGV[4]))
return {'marked', 0, epoch}
)lua";

// Its SHA-1, by which the server knows it (EVALSHA).
inline constexpr std::string_view kMarkScriptSha = "e2b4a5bdbd36b0b3dd0a3fefd859112f8c38d9cd";

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_MARKS_SCRIPT_H_
