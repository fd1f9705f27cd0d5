"""Rest mode `field`: a hash's lineage in a field of its own, written in the same atomic step (spec SHIM-9).

A hash is written field by field, by many scopes: what rests beside it is the join of their lineages. A hash that is
deleted and written anew begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from antipode_redis.commands import command_name

FIELD: Final = "antipode"
_FIELD_B: Final = FIELD.encode()
WRITES: Final = frozenset({"HSET", "HMSET", "HSETNX", "HINCRBY", "HINCRBYFLOAT", "HDEL"})
READS: Final = frozenset(
    {"HGET", "HGETALL", "HMGET", "HKEYS", "HVALS", "HLEN", "HSCAN", "HEXISTS", "HSTRLEN", "HRANDFIELD"}
)
MOST_BYTES: Final = 3072
"""A lineage at rest is at most so long; past that it is marked incomplete."""

# KEYS: the hash. ARGV: field, lineage ('' for none), most bytes, the command and its arguments after the key.
# Lineages of positions are joined into one; what Lua cannot join (objects, seals) is kept beside it, after a space.
WRITE_SCRIPT: Final = """
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
"""

_LENGTH_SCRIPT: Final = "return redis.call('HLEN', KEYS[1]) - redis.call('HEXISTS', KEYS[1], ARGV[1])"


def wire_write(args: Sequence[Any], text: str) -> tuple[Any, ...]:
    """The command that is sent for a hash write: the same one, with the lineage, in one atomic script."""
    return ("EVAL", WRITE_SCRIPT, 1, args[1], FIELD, text, MOST_BYTES, command_name(args), *args[2:])


def wire_read(args: Sequence[Any]) -> Sequence[Any]:
    """The command that is sent for a hash read, so that our field can be left out of its reply."""
    name = command_name(args)
    if name == "HVALS":
        return ("HGETALL", *args[1:])
    if name == "HLEN":
        return ("EVAL_RO", _LENGTH_SCRIPT, 1, args[1], FIELD)
    return args


def hide(args: Sequence[Any], raw: Any) -> tuple[Any, Any]:
    """A reply without our field, and the field's value if the reply held it. `raw` is not parsed by redis-py yet."""
    name = command_name(args)
    if isinstance(raw, Exception) or raw is None:
        return raw, None
    if name in {"HGETALL", "HVALS"}:
        pairs = list(raw.items()) if isinstance(raw, dict) else list(zip(raw[::2], raw[1::2], strict=True))
        rest = next((value for field, value in pairs if _is_ours(field)), None)
        kept = [(field, value) for field, value in pairs if not _is_ours(field)]
        if name == "HVALS":
            return [value for _, value in kept], rest
        return dict(kept) if isinstance(raw, dict) else [word for pair in kept for word in pair], rest
    if name == "HKEYS":
        return [field for field in raw if not _is_ours(field)], None
    if name == "HSCAN":
        cursor, found = raw
        if isinstance(found, dict):
            return [cursor, {field: value for field, value in found.items() if not _is_ours(field)}], None
        step = 1 if any(str(word).upper() == "NOVALUES" for word in args[2:]) else 2
        places = [place for place in range(0, len(found), step) if not _is_ours(found[place])]
        return [cursor, [word for place in places for word in found[place : place + step]]], None
    return raw, None


def _is_ours(field: Any) -> bool:
    return isinstance(field, bytes | str) and field in {_FIELD_B, FIELD}
