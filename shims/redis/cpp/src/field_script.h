// The scripts that write a hash with its lineage beside it: the same in every language.
#ifndef ANTIPODE_REDIS_FIELD_SCRIPT_H_
#define ANTIPODE_REDIS_FIELD_SCRIPT_H_

#include <string_view>

namespace antipode::redis {

// KEYS: the hash. ARGV: field, lineage ('' for none), most bytes, the command and its arguments after the key.
// Lineages of positions are joined into one; what Lua cannot join (objects, seals) is kept beside it, after a space.
inline constexpr std::string_view kFieldWriteScript = R"lua(
local field, own, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
local old = redis.pcall('HGET', KEYS[1], field)
if type(old) == 'table' then return old end
local result
if #ARGV <= 4004 then
  result = redis.pcall(ARGV[4], KEYS[1], unpack(ARGV, 5))
else -- Lua unpacks no more than some thousand at once
  for i = 5, #ARGV, 4000 do
    local part = redis.pcall(ARGV[4], KEYS[1], unpack(ARGV, i, math.min(i + 3999, #ARGV)))
    if type(part) == 'number' and result then result = result + part else result = part end
    if type(part) == 'table' and part.err then return part end
  end
end
if type(result) == 'table' and result.err then return result end
if redis.call('EXISTS', KEYS[1]) == 0 then return result end
if old and redis.call('HLEN', KEYS[1]) == 1 then redis.call('DEL', KEYS[1]) return result end
if own == '' or old == own then return result end
local function less(a, b) return #a < #b or (#a == #b and a < b) end
local stores, others = {}, {}
local function add(text)
  local mine, rest = {}, string.sub(text, 2)
  if string.sub(text, 1, 1) ~= '1' then return false end
  for section in string.gmatch(rest, '~([^~]+)') do
    local store, entries = string.match(section, '^([^.]+)(.*)$')
    local size = 0
    for epoch, counter in string.gmatch(entries or '', '%.%.([^.]+)%.(%d+)') do
      size = size + #epoch + #counter + 3
      mine[#mine + 1] = {store, epoch, counter}
    end
    if not store or store == '_' or size ~= #entries then return false end
  end
  for _, m in ipairs(mine) do
    local epochs = stores[m[1]] or {}
    stores[m[1]] = epochs
    if not epochs[m[2]] or less(epochs[m[2]], m[3]) then epochs[m[2]] = m[3] end
  end
  return true
end
local seen = {}
for text in string.gmatch((old or '') .. ' ' .. own, '%S+') do
  if not seen[text] then
    seen[text] = true
    if not add(text) then others[#others + 1] = text end
  end
end
local sections = {}
for store, epochs in pairs(stores) do
  local entries = {}
  for epoch, counter in pairs(epochs) do entries[#entries + 1] = '..' .. epoch .. '.' .. counter end
  table.sort(entries)
  sections[#sections + 1] = store .. table.concat(entries)
end
table.sort(sections)
local joined = {}
if #sections > 0 then joined[1] = '1~' .. table.concat(sections, '~') end
for _, text in ipairs(others) do joined[#joined + 1] = text end
local value = table.concat(joined, ' ')
if #value > most then
  value = '1~_.i'
  if #own + #value < most then value = own .. ' ' .. value end
end
redis.call('HSET', KEYS[1], field, value)
return result
)lua";

// How many fields a hash has, the lineage's own left out.
inline constexpr std::string_view kFieldLengthScript =
    "return redis.call('HLEN', KEYS[1]) - redis.call('HEXISTS', KEYS[1], ARGV[1])";

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_FIELD_SCRIPT_H_
