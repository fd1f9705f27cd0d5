"""In-band marks: one hash in the store itself, `epoch -> greatest position that lies before this record` (spec EPOCH).

A mark travels in the replication stream behind the data that it speaks of, so whoever sees it has the data: on any
replica, after any number of failovers, in a backup of the whole store. A lost branch loses its marks with it.

A field is an epoch (16 hex digits), its value `<position> <running number>`; the field `clock` holds `<last number>
<milliseconds of the last mark> <epoch of it>`. Positions are decimal texts in Lua: its numbers are exact to 2^53 only.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

DEFAULT_KEY: Final = "antipode:epochs"
MOST: Final = 1000
"""So many epochs are kept; beyond, those with the smallest running numbers go."""
PERIOD_MS = 1000
"""At most one mark a store in so many milliseconds, whoever writes it."""
CLOCK: Final = "clock"
ALL: Final = 2**64 - 1
"""The position of an epoch that an operator has settled: all of it."""

_COMMON: Final = """
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
"""

_WHERE: Final = """
local t = {}
for line in string.gmatch(redis.call('INFO', 'replication'), '[^\\r\\n]+') do
  local k, v = string.match(line, '^([%w_]+):(.*)$')
  if k then t[k] = v end
end
"""

# ARGV: epoch and position that should be covered ('' and '0': a new epoch only), period in ms, most epochs,
# 16 (digits of an epoch). Answers {word, number of ms to wait, epoch}.
MARK: Final = (
    _WHERE
    + """
if t.role ~= 'master' then return {'replica', 0, ''} end
local epoch = string.sub(t.master_replid, 1, tonumber(ARGV[5]))
if t.repl_backlog_active ~= '1' then return {'backlog', 0, epoch} end
"""
    + _COMMON
    + """
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
"""
)

# ARGV: epoch, position, most epochs, 16 (digits of an epoch). Answers 'OK', or why not: 'replica', 'current'.
SETTLE: Final = (
    _WHERE
    + """
if t.role ~= 'master' then return 'replica' end
if string.sub(t.master_replid, 1, tonumber(ARGV[4])) == ARGV[1] then return 'current' end
"""
    + _COMMON
    + """
up(ARGV[1], ARGV[2])
redis.call('HSET', KEYS[1], 'clock', string.format('%.0f %s %s', number, marked_at or '0', marked_in or '-'))
trim(tonumber(ARGV[3]))
return 'OK'
"""
)


class Mark(NamedTuple):
    """One mark: everything of `epoch` up to `position` lies before it in the store's history."""

    epoch: str
    position: int
    number: int
    """Grows from epoch to epoch as they were first met."""

    @property
    def settled(self) -> bool:
        """Whether an operator has said that the store holds the whole epoch."""
        return self.position == ALL


def position_of(value: Any) -> int | None:
    """The position in a field's value; None where it is absent or no mark."""
    words = _text(value).split(" ")
    return int(words[0]) if len(words) == 2 and words[0].isdigit() else None


def read_marks(fields: Any) -> list[Mark]:
    """The marks of a whole hash (what `HGETALL` returned), oldest epoch first."""
    pairs = fields.items() if isinstance(fields, dict) else zip(fields[::2], fields[1::2], strict=True)
    marks = []
    for field, value in pairs:
        words = _text(value).split(" ")
        if _text(field) != CLOCK and len(words) == 2 and words[0].isdigit() and words[1].isdigit():
            marks.append(Mark(_text(field), int(words[0]), int(words[1])))
    return sorted(marks, key=lambda mark: mark.number)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)
