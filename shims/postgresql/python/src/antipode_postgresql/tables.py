"""Of which tables a statement reads, by its text (spec HIST-36, spec/vectors/history-tables.json)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from antipode_postgresql.statements import Kind, classify

# Words. A token is one of: a word or sign as it is, in small letters; a name in quotes, behind one quote; and what
# stands for a literal, a number, or a name of which nobody knows here what it is called.

_QUOTED: Final = rb'"(?:[^"]|"")*"'
_ESCAPED: Final = rb"'(?:[^'\\]|\\.|'')*'"
_NEXT_LINE: Final = rb"(?:[ \t\f\v]|--[^\n\r]*)*[\n\r](?:\s|--[^\n\r]*[\n\r])*"
"""Between the lines of a literal that goes on."""
_TOKEN: Final = (
    rb"(?P<gap>\s+|--[^\n\r]*)"
    rb"|(?P<comment>/\*)"
    rb"|(?P<literal>[eE]" + _ESCAPED + rb"(?:" + _NEXT_LINE + _ESCAPED + rb")*"
    rb"|{literal}|\$(?P<tag>(?:[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*)?)\$.*?\$(?P=tag)\$)"
    rb"|(?P<quoted>" + _QUOTED + rb")|(?P<coded>[uU]&" + _QUOTED + rb")"
    rb"|(?P<word>[A-Za-z_\x80-\xff][\w$\x80-\xff]*)|(?P<number>\d+)"
    rb"|(?P<unended>['\"]|\$(?:[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*)?\$)|(?P<sign>.)"
)
_TOKENS: Final = re.compile(_TOKEN.replace(b"{literal}", rb"'(?:[^']|'')*'"), re.DOTALL)
_TOKENS_ESCAPED: Final = re.compile(_TOKEN.replace(b"{literal}", _ESCAPED), re.DOTALL)
"""With `standard_conforming_strings = off`."""
_IN_COMMENT: Final = re.compile(rb"/\*|\*/")
_LITERAL: Final = b"'"
_NUMBER: Final = b"0"
_CODED: Final = b"&"

# What they mean

_NO_READ: Final = frozenset(
    b"fetch move close create alter drop truncate lock grant revoke comment vacuum analyze reindex cluster refresh "
    b"insert update delete merge prepare import security reassign".split()
)
"""What gives no data of the tables that it names, or what the query of its cursor has said."""
_MAY_READ: Final = frozenset(b"select values call execute do copy from with table explain".split())
_QUERIES: Final = frozenset(b"select values with table".split())
_ENDS_LIST: Final = frozenset(
    b"select values where group having window order limit offset fetch for union intersect except returning set".split()
)
_OWN_FROM: Final = frozenset(b"extract substring trim overlay position".split())
_MADE: Final = frozenset(b"into temp temporary unlogged".split())
_UNNAMED: Final = ("",)
_MOST_TABLES: Final = 32
_LONGEST_KEPT: Final = 4096


def tables_read(text: bytes) -> tuple[str, ...]:
    """The tables that a statement reads, by their names in it; an empty name where it has none, or for all beyond 32;
    nothing where it reads no data. What stands in literals is none of it. Of what writes, what it returns is no read.
    Octets that are no UTF-8 are surrogates, as `surrogateescape` has them."""
    return _tables(text) if len(text) < _LONGEST_KEPT else _tables.__wrapped__(text)


@lru_cache(maxsize=2048)
def _tables(text: bytes) -> tuple[str, ...]:
    kind = classify(text)
    if kind not in (Kind.READ, Kind.MAYBE):
        return ()
    tokens = _tokens(text, _TOKENS)
    if tokens is None or (b"\\" in text and _tokens(text, _TOKENS_ESCAPED) != tokens):
        return _UNNAMED  # it breaks off, or it depends on a setting what is a literal
    reading = [each for each in _statements(tokens) if _may_read(each)]
    named = [_Statement(each) for each in reading]
    tables = list(dict.fromkeys(table for each in named for table in each.tables))
    if not tables:
        is_unclear = reading and (kind is Kind.MAYBE or any(each.is_unclear for each in named))
        return _UNNAMED if is_unclear else ()
    told = tuple(name.decode("utf-8", "surrogateescape") for name in tables[:_MOST_TABLES])
    return told + _UNNAMED if len(tables) > _MOST_TABLES else told


def _tokens(text: bytes, pattern: re.Pattern[bytes]) -> list[bytes] | None:
    """None where a literal, a name or a comment has no end."""
    tokens, at = [], 0
    while at < len(text):
        found = pattern.match(text, at)
        assert found is not None  # any octet is a sign
        at = found.end()
        kind = found.lastgroup if found["literal"] is None else "literal"
        if kind == "unended":
            return None
        if kind == "comment":
            at = _end_of_comment(text, at)
            if not at:
                return None
        elif kind != "gap":
            tokens.append(_token(str(kind), found[0]))
    return tokens


def _end_of_comment(text: bytes, at: int) -> int:
    """Comments may be nested. 0: it has no end."""
    depth = 1
    for sign in _IN_COMMENT.finditer(text, at):
        depth += 1 if sign[0] == b"/*" else -1
        if not depth:
            return sign.end()
    return 0


def _token(kind: str, spelled: bytes) -> bytes:
    if kind == "quoted":
        return b'"' + spelled[1:-1].replace(b'""', b'"')
    return {"literal": _LITERAL, "number": _NUMBER, "coded": _CODED}.get(kind) or spelled.lower()


def _statements(tokens: Sequence[bytes]) -> Iterator[list[bytes]]:
    depth, one = 0, list[bytes]()
    for token in tokens:
        depth = depth + 1 if token == b"(" else max(0, depth - 1) if token == b")" else depth
        if token == b";" and not depth:
            yield one
            one = []
        else:
            one.append(token)
    yield one


def _may_read(statement: Sequence[bytes]) -> bool:
    first = next((token for token in statement if token != b"("), b"")
    if first in _NO_READ or _MAY_READ.isdisjoint(statement):
        return False
    return first != b"copy" or not _copies_in(statement)


def _copies_in(statement: Sequence[bytes]) -> bool:
    """Whether a COPY has its FROM outside of all parentheses."""
    depth = 0
    for token in statement:
        depth += (token == b"(") - (token == b")")
        if token == b"from" and depth == 0:
            return True
    return False


def _is_name(token: bytes) -> bool:
    return token[:1].isalpha() or token[:1] in (b"_", b'"') or token[:1] >= b"\x80"


def _plain(token: bytes) -> bytes:
    return token.removeprefix(b'"')


class _Level:
    """What is known between two parentheses."""

    __slots__ = ("defines", "expects", "has_own_from", "in_with", "is_recursive", "lists", "named")

    def __init__(
        self, named: frozenset[bytes], *, expects: bool, has_own_from: bool = False, defines: bytes = b""
    ) -> None:
        self.named = named
        """What WITH has named here: no tables."""
        self.expects = expects
        """Whether a table comes next."""
        self.has_own_from = has_own_from
        """In extract(… from …), which is no clause."""
        self.defines = defines
        """What it is called outside: in WITH."""
        self.lists = self.in_with = self.is_recursive = False


class _Statement:
    """One statement's tables."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.tables: list[bytes] = []
        self.is_unclear = False
        """Whether it has something in a table's place of which nobody knows what it is called."""
        self._tokens = tokens
        self._levels = [_Level(frozenset(), expects=False)]
        at = 0
        while at < len(tokens):
            at = self._token(at, tokens[at])
        self.is_unclear |= self._levels[-1].expects

    def _at(self, at: int) -> bytes:
        return self._tokens[at] if 0 <= at < len(self._tokens) else b""

    def _token(self, at: int, token: bytes) -> int:
        """Where to go on."""
        level = self._levels[-1]
        if token == b"(":
            own = self._at(at - 1) in _OWN_FROM
            self._levels.append(_Level(level.named, expects=level.expects, has_own_from=own))
            level.expects = False
        elif token == b")":
            self._close()
        elif level.expects and token not in _QUERIES:
            return self._table(at, token, level)
        elif token == b",":
            level.expects |= level.lists
            return self._define(at + 1, level) if level.in_with and not level.lists else at + 1
        elif self._at(at - 1) not in (b".", b"as"):  # behind these, any word is a name
            return self._word(at, token, level)
        return at + 1

    def _close(self) -> None:
        if len(self._levels) > 1:
            closed = self._levels.pop()
            self.is_unclear |= closed.expects
            if closed.defines:
                self._levels[-1].named |= {closed.defines}

    def _table(self, at: int, token: bytes, level: _Level) -> int:
        if token in (b"only", b"lateral"):
            return at + 1
        level.expects = False
        if token == b"rows" and self._at(at + 1) == b"from":  # functions, side by side
            return at + 2
        if not _is_name(token):
            self.is_unclear = True
            return at + 1
        is_copied = self._at(at - 1) == b"copy"  # columns may come next, and no call
        parts = [_plain(token)]
        at += 1
        while self._at(at) == b"." and _is_name(self._at(at + 1)):
            parts.append(_plain(self._at(at + 1)))
            at += 2
        is_called = self._at(at) == b"(" and not is_copied
        if not is_called and (len(parts) > 1 or parts[0] not in level.named):
            self.tables.append(b".".join(parts))
        return at

    def _word(self, at: int, token: bytes, level: _Level) -> int:
        if token in _ENDS_LIST:
            level.lists = False
        if token in _QUERIES:
            level.expects = level.in_with = False
        if token == b"from":
            if not level.has_own_from and not self._is_no_clause(at):
                level.expects = level.lists = True
        elif token == b"join" or (token == b"copy" and at == 0):
            level.expects = True
        elif token == b"table":
            level.expects = self._at(at - 1) not in _MADE
        elif token == b"with":
            level.is_recursive = self._at(at + 1) == b"recursive"
            return self._define(at + 1 + level.is_recursive, level)
        return at + 1

    def _is_no_clause(self, at: int) -> bool:
        before = self._at(at - 1)
        return before == b"delete" or (before == b"distinct" and self._at(at - 2) in (b"is", b"not"))

    def _define(self, at: int, level: _Level) -> int:
        """What WITH names, if it names anything here: its query comes next."""
        name, end = self._at(at), at + 1
        if self._at(end) == b"(":
            end += 1
            while self._at(end) == b"," or _is_name(self._at(end)):
                end += 1
            end += 1  # its closing parenthesis
        if not _is_name(name) or self._at(end) != b"as":
            return at
        end += 1
        end += self._at(end) == b"not"
        end += self._at(end) == b"materialized"
        if self._at(end) != b"(":
            return at
        level.in_with = True
        if level.is_recursive:
            level.named |= {_plain(name)}
        self._levels.append(_Level(level.named, expects=False, defines=_plain(name)))
        return end + 1
