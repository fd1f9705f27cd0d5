"""The settings of the process: one immutable value from code, environment and defaults (spec CONF).

Order: call, then store option, then `configure(…)`, then environment, then default. For `mode` and `edge`
the operator can be more careful than the code, never less: of environment and code, the more careful wins.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypedDict

from antipode._base import logs
from antipode._base.observers import events
from antipode._base.seal_keys import NO_KEYS, Keys, parse_keys
from antipode._base.setting_fields import STORE_WORDS, WORDS, Mode, SettingField, Trust, did_you_mean
from antipode._model.errors import ConfigurationError

__all__ = [
    "Mode",
    "SettingOrigin",
    "Settings",
    "SettingsWords",
    "StoreSettings",
    "Trust",
    "change",
    "mode_of",
    "reset_settings",
    "setting_origins",
    "settings",
    "settings_generation",
    "store_settings",
    "stores_in_environment",
    "timeout_of",
    "unknown_variables",
]

_PREFIX: Final = "ANTIPODE_"
_STORE_VARIABLE: Final = re.compile(f"{_PREFIX}STORE_(.+)_({'|'.join(word.variable for word in STORE_WORDS.values())})")
_TOOLS: Final = (f"{_PREFIX}LAB", f"{_PREFIX}BENCHMARK", f"{_PREFIX}TEST")
"""How the names begin that this project's own tools read."""
DEFAULT: Final = "default"
IN_CODE: Final = "configure"


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of this process (API section 3j). Durations are in seconds."""

    mode: Mode = Mode.ENFORCE
    region: str = ""
    timeout: float = 1.0
    on_timeout: str = "raise"
    on_unproven: str = "as_timeout"
    on_vacuous: str = "proceed"
    stores: tuple[str, ...] = ()
    redeliver_delay: float = 1.0
    on_pending: str = "mark"
    trust: Trust = Trust.PRIVATE
    edge: bool = False
    forwarded: str = "check"
    peers: tuple[str, ...] = ()
    keys_file: str = ""
    keys: Keys = NO_KEYS
    trust_unix: bool = False
    seal_ttl: float = 300.0
    seal_rest_ttl: float = 0.0
    budget_bytes: int = 1024
    hash_keys: bool = False
    auto_merge: bool = False
    max_waiters: int = 1000
    max_tasks: int = 20000
    replica_out_after: float = 2.0
    reconnect: float = 5.0
    left_server: float = 60.0
    on_replica_out: str = "name"
    max_fallbacks: int = 64
    free_path_ttl: float = 0.25
    poll: float = 0.005
    session_ttl: float = 300.0
    records: str = "antipode-records"
    records_max_mib: int = 64
    records_folder_mib: int = 1024
    sample: float = 0.01
    repeat_reads: bool = True
    history: str = ""
    branches: str = ""
    """The store that holds the branches that this process announces (spec BRANCH)."""


class SettingsWords(TypedDict, total=False):
    """What `configure` takes; None takes back what code had set before."""

    mode: Mode | str | None
    region: str | None
    timeout: float | timedelta | None
    on_timeout: str | None
    on_unproven: str | None
    on_vacuous: str | None
    stores: Iterable[str] | None
    redeliver_delay: float | timedelta | None
    on_pending: str | None
    trust: Trust | str | None
    edge: bool | None
    forwarded: str | None
    peers: Iterable[str] | None
    keys_file: str | os.PathLike[str] | None
    keys: Mapping[str, bytes] | None
    trust_unix: bool | None
    seal_ttl: float | timedelta | None
    seal_rest_ttl: float | timedelta | None
    budget_bytes: int | None
    hash_keys: bool | None
    auto_merge: bool | None
    max_waiters: int | None
    max_tasks: int | None
    replica_out_after: float | timedelta | None
    reconnect: float | timedelta | None
    left_server: float | timedelta | None
    on_replica_out: str | None
    max_fallbacks: int | None
    free_path_ttl: float | timedelta | None
    poll: float | timedelta | None
    session_ttl: float | timedelta | None
    records: str | os.PathLike[str] | None
    records_max_mib: int | None
    records_folder_mib: int | None
    sample: float | None
    repeat_reads: bool | None
    history: str | os.PathLike[str] | None
    branches: Any


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """What the environment says of one store; None where it says nothing. `timeout` in seconds."""

    replicas: tuple[str, ...] | None = None
    primary: str | None = None
    timeout: float | None = None
    mode: Mode | None = None


class SettingOrigin(NamedTuple):
    """One setting in force: word, variable (empty: code only), value, and where that came from."""

    word: str
    variable: str
    value: Any
    origin: str


class _ResolvedSettings(NamedTuple):
    settings: Settings
    origins: Mapping[str, str]
    stores: Mapping[str, StoreSettings]  # by the name as it is spelled in variables
    unknown: Mapping[str, str]  # variables that do nothing, each with the nearest known one


_lock = threading.Lock()
_code: dict[str, Any] = {}
_current: Settings | None = None
_resolved: _ResolvedSettings = _ResolvedSettings(Settings(), {}, {}, {})
_generation = 0


def settings() -> Settings:
    """The settings in force; the environment is read at the first call. Cheap enough for every request.

    Raises ConfigurationError at the first call where a variable cannot be read; the message names it.
    """
    return _current or _load()


def settings_generation() -> int:
    """A number that grows whenever the settings may have changed, for what is derived from them."""
    return _generation


def outdate() -> None:
    """Make whatever is derived from the settings be derived again: what a store's own options say has changed."""
    global _generation
    with _lock:
        _generation += 1


def change(words: Mapping[str, Any], mark: Callable[[Collection[Any]], set[Any]]) -> Settings:
    """Set these words for the process; the environment is read again.

    mark: of the open scopes those besides, and return them (SCOPE-26).

    Raises ConfigurationError for an unknown word or a bad value, and changes nothing then.
    """
    with _lock:
        was_off = _current is not None and _current.mode is Mode.OFF
        code = dict(_code)
        for name, value in words.items():
            word = WORDS.get(name)
            if word is None:
                raise ConfigurationError(
                    f"configure({name}=…): no such setting.{did_you_mean(name, WORDS)}", code="AP302"
                )
            if value is None:
                code.pop(name, None)
            else:
                code[name] = _checked(word, value, f"configure({name}={_shown(name, value)})")
        resolved = _resolve(code)
        leaves_off = was_off and resolved.settings.mode is not Mode.OFF
        # Marked first: under the new mode no barrier may pass one that is not.
        marked = mark(()) if leaves_off else set()
        _code.clear()
        _code.update(code)
        installed = _install(resolved)
    if leaves_off:
        mark(marked)  # what was opened meanwhile
    if installed.history:
        events.on_settings_changed()
    return installed


def reset_settings() -> None:
    """Forgets what code has set, and reads the environment again at the next look (for tests)."""
    global _current, _generation
    with _lock:
        _code.clear()
        _current = None
        _generation += 1


def setting_origins() -> list[SettingOrigin]:
    """Every setting in force and where it came from, for `antipode version`; keys are shown by their ids."""
    now = settings()
    return [
        SettingOrigin(item.name, WORDS[item.name].variable, getattr(now, item.name), _resolved.origins[item.name])
        for item in fields(Settings)
    ]


def after_fork() -> None:
    """In the child of a fork: another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


def stores_in_environment() -> Mapping[str, StoreSettings]:
    """What variables say of single stores, by the store's name as they spell it (`BLOG_POSTS`)."""
    settings()
    return _resolved.stores


def is_said(word: str) -> bool:
    """Return whether the environment or code says this setting, so that it is not the default's."""
    return _resolved.origins.get(word, DEFAULT) != DEFAULT


def unknown_variables() -> Mapping[str, str]:
    """The `ANTIPODE_*` variables that are set and do nothing, each with a hint at the nearest known one or empty."""
    settings()
    return _resolved.unknown


def store_settings(name: str) -> StoreSettings:
    """What ANTIPODE_STORE_<NAME>_REPLICAS, _PRIMARY, _TIMEOUT_MS, _MODE say; `blog-posts` is BLOG_POSTS."""
    settings()
    return _resolved.stores.get(_variable_name(name), _NO_STORE_SETTINGS)


def timeout_of(store: str | None = None, option: float | timedelta | None = None) -> float:
    """A barrier's deadline in seconds where the call has none: store option, code, environment, default."""
    if option is not None:
        return float(_checked(WORDS["timeout"], option, f"timeout={option!r}"))
    now = settings()
    if store is None or "timeout" in _code or not _resolved.stores:
        return now.timeout
    own = store_settings(store).timeout
    return now.timeout if own is None else own


def mode_of(store: str, option: Mode | str | None = None) -> Mode:
    """The mode of one store: the most careful of process, store's variable and store option."""
    now = settings()
    if option is None and not _resolved.stores:
        return now.mode
    modes = [now.mode]
    own = store_settings(store).mode
    if own is not None:
        modes.append(own)
    if option is not None:
        modes.append(_checked(WORDS["mode"], option, f"mode={option!r}"))
    return max(modes, key=lambda mode: mode.care)


_NO_STORE_SETTINGS: Final = StoreSettings()


def _load() -> Settings:
    with _lock:
        return _current or _install(_resolve(_code))


def _install(resolved: _ResolvedSettings) -> Settings:
    global _current, _resolved, _generation
    _resolved = resolved
    _current = resolved.settings
    _generation += 1
    return resolved.settings


def _resolve(code: Mapping[str, Any]) -> _ResolvedSettings:
    environment = {name: text.strip() for name, text in os.environ.items() if name.startswith(_PREFIX)}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, word in WORDS.items():
        text = environment.pop(word.variable, "")
        origins[name] = DEFAULT
        if text:
            values[name] = _read(word, text, word.variable)
            origins[name] = f"environment ({word.variable})"
        if name in code and not (name in values and _is_more_careful(name, values[name], code[name])):
            values[name] = code[name]
            origins[name] = IN_CODE
    stores = _read_stores(environment)
    known = [word.variable for word in WORDS.values() if word.variable]
    unknown = {name: did_you_mean(name, known) for name in environment if not name.startswith(_TOOLS)}
    for name, hint in unknown.items():
        logs.warn(f"variable {name}", f"the variable {name} is not known and does nothing.{hint}", code="AP302")
    return _ResolvedSettings(_with_keys(Settings(**values), origins), origins, stores, unknown)


def _with_keys(now: Settings, origins: dict[str, str]) -> Settings:
    """Reads the keys file, and lets keys alone mean `key`."""
    keys = now.keys
    if not keys and now.keys_file:
        where = f"{WORDS['keys_file'].variable}={now.keys_file}"
        try:
            keys = parse_keys(Path(now.keys_file).read_text("utf-8"), where)
            if Path(now.keys_file).stat().st_mode & stat.S_IROTH and os.name == "posix":
                logs.warn(
                    "keys file", f"{where} may be read by every user of this machine: chmod o-r it.", code="AP307"
                )
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{where} cannot be read: {error}", code="AP304") from error
        origins["keys"] = origins["keys_file"]
    trust = now.trust
    if keys and origins["trust"] == DEFAULT:
        trust = Trust.KEY
        origins["trust"] = "keys are set"
    if trust is Trust.KEY and not keys:
        raise ConfigurationError("trust=key needs keys: set ANTIPODE_KEYS_FILE, or configure(keys=…)", code="AP303")
    return replace(now, keys=keys, trust=trust)


def _is_more_careful(name: str, environment: Any, code: Any) -> bool:
    if name == "mode":
        return bool(environment.care > code.care)
    return name == "edge" and bool(environment)


def _read_stores(environment: dict[str, str]) -> dict[str, StoreSettings]:
    """Takes the variables of single stores out of `environment` and reads them."""
    words = {word.variable: (name, word) for name, word in STORE_WORDS.items()}
    found: dict[str, dict[str, Any]] = {}
    for variable, text in list(environment.items()):
        match = _STORE_VARIABLE.fullmatch(variable)
        if match is not None:
            del environment[variable]
            if text:
                name, word = words[match[2]]
                found.setdefault(match[1], {})[name] = _read(word, text, variable)
    return {store: StoreSettings(**values) for store, values in found.items()}


def _read(word: SettingField, text: str, where: str) -> Any:
    try:
        return word.check(word.read(text))
    except (ValueError, TypeError) as error:
        wanted = str(error) if str(error).startswith("want") else "want a number"
        raise ConfigurationError(f"{where}={text!r}: {wanted}", code="AP301") from None


def _checked(word: SettingField, value: Any, where: str) -> Any:
    try:
        return word.check(value)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{where}: {error}", code="AP301") from None


def _shown(name: str, value: object) -> str:
    return "…" if name == "keys" else repr(value)


@lru_cache(maxsize=1024)
def _variable_name(store: str) -> str:
    return re.sub("[^A-Za-z0-9]", "_", store).upper()
