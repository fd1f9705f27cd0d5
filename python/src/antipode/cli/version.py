"""`antipode version`: versions, shims, and every setting in force with where it came from (spec CONF-8)."""

from __future__ import annotations

import logging
import platform
from collections.abc import Mapping
from typing import Any, Final

from antipode import __version__
from antipode._base.settings import (
    SettingOrigin,
    StoreSettings,
    setting_origins,
    stores_in_environment,
    unknown_variables,
)
from antipode._model import wire
from antipode._model.errors import ConfigurationError
from antipode.cli.output import columns, fail, printable, say
from antipode.shim.administration import found_shims, without_credentials

_NOTHING: Final = "-"


def version() -> None:
    """Shows the version, the wire form, the shims found, and every setting in force and where it came from."""
    say(f"antipode {__version__}, wire form {wire.EMPTY_TEXT}, Python {platform.python_version()}")
    say("shims")
    for line in columns(_shim_rows()):
        say(line)
    # What it warns about is shown below, with the rest.
    logging.getLogger("antipode").addHandler(logging.NullHandler())
    try:
        settings, stores, unknown = setting_origins(), stores_in_environment(), unknown_variables()
    except ConfigurationError as error:
        fail(f"{printable(str(error))}.")
    say("settings")
    for line in columns([_setting_row(setting) for setting in settings]):
        say(line)
    rows = _store_rows(stores)
    if rows:
        say("settings of single stores")
    for line in columns(rows):
        say(line)
    if unknown:
        say("variables that do nothing")
    for name, hint in sorted(unknown.items()):
        say(f"  {printable(name)} is not known.{hint}")


def _shim_rows() -> list[list[str]]:
    rows = []
    for found in found_shims():
        offered = found.administration
        told = found.error and f"CANNOT BE USED: {found.error}"
        if offered is not None:
            told = " ".join(f"{scheme}://" for scheme in offered.schemes)
        rows.append([printable(found.name), printable(found.package), printable(told)])
    return rows or [["none"]]


def _setting_row(setting: SettingOrigin) -> list[str]:
    return [setting.variable or f"configure({setting.word}=…)", _value(setting), printable(setting.origin)]


def _value(setting: SettingOrigin) -> str:
    """As the variable would spell it, unit included; keys by their ids."""
    value: Any = setting.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if setting.variable.endswith("_MS"):
            return f"{value * 1000:g} ms"
        return f"{value:g} s" if setting.variable.endswith("_S") else f"{value:g}"
    if isinstance(value, Mapping):  # keys
        return printable(", ".join(value)) or _NOTHING
    if isinstance(value, tuple):
        return printable(", ".join(value)) or _NOTHING
    return printable(str(value)) or _NOTHING


def _store_rows(stores: Mapping[str, StoreSettings]) -> list[list[str]]:
    rows: list[list[str]] = []
    for name, store in sorted(stores.items()):
        prefix = f"ANTIPODE_STORE_{name}_"
        if store.replicas is not None:
            shown = ", ".join(without_credentials(url) for url in store.replicas)
            rows.append([f"{prefix}REPLICAS", printable(shown)])
        if store.primary is not None:
            rows.append([f"{prefix}PRIMARY", printable(without_credentials(store.primary))])
        if store.timeout is not None:
            rows.append([f"{prefix}TIMEOUT_MS", f"{store.timeout * 1000:g} ms"])
        if store.mode is not None:
            rows.append([f"{prefix}MODE", store.mode.value])
    return rows
