"""The words of the settings: each one's variable, how its text is read, and what it may be (spec CONF)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from antipode._base.seal_keys import Keys
from antipode._model.wire import MAX_BYTES

_E = TypeVar("_E", bound=StrEnum)
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})
LEAST_BUDGET: Final = 16
"""Room for the empty lineage with its mark of incompleteness, in bytes."""


class Mode(StrEnum):
    """What barriers do: enforce, only record, or nothing at all."""

    ENFORCE = "enforce"
    DRY_RUN = "dry-run"
    OFF = "off"

    @property
    def care(self) -> int:
        """How careful it is to the application: of environment and code, the greater wins."""
        return _CARE[self]


_CARE: Final = {Mode.ENFORCE: 0, Mode.DRY_RUN: 1, Mode.OFF: 2}


class Trust(StrEnum):
    """Whose lineages are believed, and who may see ours (spec TRUST)."""

    PRIVATE = "private"
    ALL = "all"
    NONE = "none"
    KEY = "key"


class SettingField(NamedTuple):
    """One setting: its variable, how that is read, and a check that gives the value its type.

    `check` raises ValueError or TypeError with a few words on what is wanted.
    """

    variable: str
    read: Callable[[str], Any]
    check: Callable[[Any], Any]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ` Did you mean …?` with the nearest known name, or nothing: the end of a refusal."""
    near = get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]}?" if near else ""


def _as_is(text: str) -> str:
    return text


def _choice(variable: str, kind: type[_E]) -> SettingField:
    return _one_of(variable, [member.value for member in kind], kind)


def _one_of(variable: str, words: list[str], kind: Callable[[str], Any] = str) -> SettingField:
    def check(value: Any) -> Any:
        if value not in words:
            raise ValueError(f"want one of {', '.join(words)}.{did_you_mean(value, words)}")
        return kind(value)

    return SettingField(variable, lambda text: text.lower(), check)


def _flag(variable: str) -> SettingField:
    def read(text: str) -> bool:
        if text.lower() in _TRUE or text.lower() in _FALSE:
            return text.lower() in _TRUE
        raise ValueError("want true or false")

    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise TypeError("want True or False")
        return value

    return SettingField(variable, read, check)


def _number(value: Any, least: float, most: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("want a number")
    if not math.isfinite(value) or not least <= value <= most:
        bounds = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise ValueError(f"want a number {bounds}, and not infinite")
    return float(value)


def _duration(variable: str, least: float = 0.0, most: float = math.inf) -> SettingField:
    """Seconds in code, as float or timedelta; the variable's unit is the end of its name."""
    unit = 1000.0 if variable.endswith("_MS") else 1.0

    def check(value: Any) -> float:
        return _number(value.total_seconds() if isinstance(value, timedelta) else value, least, most)

    return SettingField(variable, lambda text: float(text) / unit, check)


def _count(variable: str, least: int, most: float = math.inf) -> SettingField:
    def check(value: Any) -> int:
        if not isinstance(value, int):
            raise TypeError("want a whole number")
        return int(_number(value, least, most))

    return SettingField(variable, int, check)


def _share(variable: str) -> SettingField:
    return SettingField(variable, float, lambda value: _number(value, 0.0, 1.0))


def _names(variable: str) -> SettingField:
    def check(value: Any) -> tuple[str, ...]:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise TypeError("want a list of names")
        names = tuple(value)
        if not all(isinstance(name, str) and name for name in names):
            raise TypeError("want a list of names")
        return names

    return SettingField(variable, split_list, check)


def _text(variable: str) -> SettingField:
    def check(value: Any) -> str:
        if not isinstance(value, str | os.PathLike):
            raise TypeError("want a text")
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    return SettingField(variable, _as_is, check)


def _keys(value: Any) -> Keys:
    if not isinstance(value, Mapping):
        raise TypeError("want a mapping from key ids to octets")
    return value if isinstance(value, Keys) else Keys(value)


def split_list(text: str) -> tuple[str, ...]:
    """The items of a variable that holds a list: between commas, white space or both."""
    return tuple(text.replace(",", " ").split())


_HOUR_S: Final = 3600.0
_A = "ANTIPODE_"
WORDS: Final[Mapping[str, SettingField]] = {
    "mode": _choice(_A + "MODE", Mode),
    "region": _text(_A + "REGION"),
    "timeout": _duration(_A + "TIMEOUT_MS", most=_HOUR_S),
    "on_timeout": _one_of(_A + "ON_TIMEOUT", ["raise", "proceed"]),
    "on_unproven": _one_of(_A + "ON_UNPROVEN", ["raise", "proceed", "as_timeout"]),
    "on_vacuous": _one_of(_A + "ON_VACUOUS", ["raise", "proceed"]),
    "stores": _names(_A + "STORES"),
    "redeliver_delay": _duration(_A + "REDELIVER_DELAY_MS"),
    "on_pending": _one_of(_A + "ON_PENDING", ["mark", "warn", "raise"]),
    "trust": _choice(_A + "TRUST", Trust),
    "edge": _flag(_A + "EDGE"),
    "forwarded": _one_of(_A + "FORWARDED", ["check", "ignore"]),
    "peers": _names(_A + "PEERS"),
    "keys_file": _text(_A + "KEYS_FILE"),
    "keys": SettingField("", _as_is, _keys),
    "trust_unix": _flag(_A + "TRUST_UNIX"),
    "seal_ttl": _duration(_A + "SEAL_TTL_S", least=1.0),
    "seal_rest_ttl": _duration(_A + "SEAL_REST_TTL_S"),
    "budget_bytes": _count(_A + "BUDGET_BYTES", LEAST_BUDGET, MAX_BYTES),
    "hash_keys": _flag(_A + "HASH_KEYS"),
    "auto_merge": _flag(_A + "AUTO_MERGE"),
    "max_waiters": _count(_A + "MAX_WAITERS", 0),
    "max_tasks": _count(_A + "MAX_TASKS", 0),
    "replica_out_after": _duration(_A + "REPLICA_OUT_AFTER_MS"),
    "reconnect": _duration(_A + "RECONNECT_MS", least=0.1),
    "left_server": _duration(_A + "LEFT_SERVER_MS"),
    "on_replica_out": _one_of(_A + "ON_REPLICA_OUT", ["name", "fail"]),
    "max_fallbacks": _count(_A + "MAX_FALLBACKS", 0),
    "free_path_ttl": _duration(_A + "FREE_PATH_TTL_MS"),
    "poll": _duration(_A + "POLL_MS", least=0.0001),
    "session_ttl": _duration(_A + "SESSION_TTL_S"),
    "records": _text(_A + "RECORDS"),
    "records_max_mib": _count(_A + "RECORDS_MAX_MIB", 1),
    "records_folder_mib": _count(_A + "RECORDS_FOLDER_MIB", 1),
    "sample": _share(_A + "SAMPLE"),
    "repeat_reads": _flag(_A + "REPEAT_READS"),
    "history": _text(_A + "HISTORY"),
    "branches": SettingField("", _as_is, str),
}
"""Every setting of the process, by its word in `configure`."""

STORE_WORDS: Final[Mapping[str, SettingField]] = {
    "replicas": _names("REPLICAS"),
    "primary": _text("PRIMARY"),
    "timeout": _duration("TIMEOUT_MS", most=_HOUR_S),
    "mode": _choice("MODE", Mode),
}
"""Every setting of one store; its variable is ANTIPODE_STORE_<NAME>_ and this."""
