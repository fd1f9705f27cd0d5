"""Settings by code (API section 2): what they change beside themselves, the rooms above the settings do."""

from __future__ import annotations

from typing import Unpack

from antipode._base.settings import Settings, SettingsWords, change
from antipode._scope.mode_changes import mark_open_scopes
from antipode._store.branch_table import checked_store


def configure(**words: Unpack[SettingsWords]) -> Settings:
    """Set these words for the process, at once and also while it runs; the others stay as they are.

    The environment is read again. `None` takes back what an earlier call set. Durations are float seconds or
    timedelta. `branches` takes a wrapped client, whose store is asked whether it can hold the table of branches.

    Raises ConfigurationError for an unknown word or a bad value, and changes nothing then.
    """
    if words.get("branches") is not None:
        words["branches"] = checked_store(words["branches"])
    return change(words, mark_open_scopes)
