"""Settings (spec CONF): where values come from, who wins, and that a bad one is named."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest
from antipode._base.setting_fields import WORDS
from antipode._base.settings import (
    Mode,
    Settings,
    SettingsWords,
    StoreSettings,
    Trust,
    mode_of,
    reset_settings,
    setting_origins,
    settings,
    settings_generation,
    store_settings,
    timeout_of,
)
from antipode._facade.configuration import configure
from antipode._model.errors import ConfigurationError

KEY = base64.b64encode(b"k" * 32).decode()


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith("ANTIPODE_"):
            monkeypatch.delenv(name)
    reset_settings()
    yield
    monkeypatch.undo()
    reset_settings()


def test_every_field_has_a_word_and_a_type_for_configure() -> None:
    names = [field.name for field in fields(Settings)]
    assert names == list(WORDS)
    assert set(names) == set(SettingsWords.__annotations__)


def test_the_defaults_are_those_of_the_documentation() -> None:
    assert settings() == Settings()
    assert {origin.origin for origin in setting_origins()} == {"default"}


@pytest.mark.parametrize(
    ("variable", "text", "word", "value"),
    [
        ("ANTIPODE_MODE", "dry-run", "mode", Mode.DRY_RUN),
        ("ANTIPODE_REGION", "b", "region", "b"),
        ("ANTIPODE_TIMEOUT_MS", "250", "timeout", 0.25),
        ("ANTIPODE_ON_TIMEOUT", "proceed", "on_timeout", "proceed"),
        ("ANTIPODE_ON_UNPROVEN", "raise", "on_unproven", "raise"),
        ("ANTIPODE_ON_VACUOUS", "raise", "on_vacuous", "raise"),
        ("ANTIPODE_STORES", "blog-posts, user-acl", "stores", ("blog-posts", "user-acl")),
        ("ANTIPODE_REDELIVER_DELAY_MS", "1500", "redeliver_delay", 1.5),
        ("ANTIPODE_ON_PENDING", "raise", "on_pending", "raise"),
        ("ANTIPODE_TRUST", "none", "trust", Trust.NONE),
        ("ANTIPODE_EDGE", "true", "edge", True),
        ("ANTIPODE_FORWARDED", "ignore", "forwarded", "ignore"),
        ("ANTIPODE_PEERS", ".example.com,203.0.113.0/24", "peers", (".example.com", "203.0.113.0/24")),
        ("ANTIPODE_SEAL_TTL_S", "60", "seal_ttl", 60.0),
        ("ANTIPODE_BUDGET_BYTES", "4087", "budget_bytes", 4087),
        ("ANTIPODE_HASH_KEYS", "1", "hash_keys", True),
        ("ANTIPODE_AUTO_MERGE", "yes", "auto_merge", True),
        ("ANTIPODE_MAX_WAITERS", "7", "max_waiters", 7),
        ("ANTIPODE_MAX_TASKS", "8", "max_tasks", 8),
        ("ANTIPODE_REPLICA_OUT_AFTER_MS", "500", "replica_out_after", 0.5),
        ("ANTIPODE_RECONNECT_MS", "1500", "reconnect", 1.5),
        ("ANTIPODE_LEFT_SERVER_MS", "0", "left_server", 0.0),
        ("ANTIPODE_ON_REPLICA_OUT", "fail", "on_replica_out", "fail"),
        ("ANTIPODE_MAX_FALLBACKS", "3", "max_fallbacks", 3),
        ("ANTIPODE_FREE_PATH_TTL_MS", "0", "free_path_ttl", 0.0),
        ("ANTIPODE_POLL_MS", "2.5", "poll", 0.0025),
        ("ANTIPODE_SESSION_TTL_S", "30", "session_ttl", 30.0),
        ("ANTIPODE_RECORDS", "/var/records", "records", "/var/records"),
        ("ANTIPODE_RECORDS_MAX_MIB", "8", "records_max_mib", 8),
        ("ANTIPODE_SAMPLE", "0.5", "sample", 0.5),
        ("ANTIPODE_REPEAT_READS", "off", "repeat_reads", False),
        ("ANTIPODE_HISTORY", "run.jsonl", "history", "run.jsonl"),
    ],
)
def test_a_variable_is_read(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, word: str, value: object
) -> None:
    monkeypatch.setenv(variable, text)
    reset_settings()  # an earlier test's thread may have looked before the variable was set
    assert getattr(settings(), word) == value
    origin = next(origin for origin in setting_origins() if origin.word == word)
    assert origin.variable == variable
    assert origin.origin == f"environment ({variable})"


def test_code_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPODE_TIMEOUT_MS", "250")
    reset_settings()
    assert configure(timeout=timedelta(seconds=2)).timeout == 2.0
    assert timeout_of(option=0.1) == 0.1
    assert configure(timeout=None).timeout == 0.25


def test_configure_takes_effect_at_once_and_keeps_what_it_was_not_told() -> None:
    """CONF-2."""
    before = settings_generation()
    configure(region="b")
    configure(timeout=3)
    assert (settings().region, settings().timeout) == ("b", 3.0)
    assert settings_generation() > before


@pytest.mark.parametrize(
    ("environment", "code", "wins"),
    [
        ("dry-run", "enforce", Mode.DRY_RUN),
        ("off", "dry-run", Mode.OFF),
        ("enforce", "dry-run", Mode.DRY_RUN),
        ("dry-run", "off", Mode.OFF),
        ("", "off", Mode.OFF),
    ],
)
def test_of_environment_and_code_the_more_careful_mode_wins(
    monkeypatch: pytest.MonkeyPatch, environment: str, code: str, wins: Mode
) -> None:
    monkeypatch.setenv("ANTIPODE_MODE", environment)
    reset_settings()
    assert configure(mode=code).mode is wins


def test_code_cannot_undo_an_edge_that_the_operator_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPODE_EDGE", "true")
    reset_settings()
    assert configure(edge=False).edge


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("ANTIPODE_MODE", "fast"),
        ("ANTIPODE_ON_TIMEOUT", "redeliver"),
        ("ANTIPODE_ON_UNPROVEN", "redeliver"),
        ("ANTIPODE_TIMEOUT_MS", "soon"),
        ("ANTIPODE_TIMEOUT_MS", "-1"),
        ("ANTIPODE_TIMEOUT_MS", "inf"),
        ("ANTIPODE_TIMEOUT_MS", "nan"),
        ("ANTIPODE_EDGE", "maybe"),
        ("ANTIPODE_BUDGET_BYTES", "4088"),
        ("ANTIPODE_BUDGET_BYTES", "1e3"),
        ("ANTIPODE_SAMPLE", "1.5"),
        ("ANTIPODE_POLL_MS", "0"),
        ("ANTIPODE_TRUST", "key"),
        ("ANTIPODE_KEYS_FILE", "/nowhere/keys"),
        ("ANTIPODE_STORE_BLOG_POSTS_TIMEOUT_MS", "soon"),
        ("ANTIPODE_STORE_BLOG_POSTS_MODE", "fast"),
    ],
)
def test_a_bad_value_is_an_error_that_names_its_setting(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    monkeypatch.setenv(variable, text)
    reset_settings()
    with pytest.raises(ConfigurationError, match=variable if variable != "ANTIPODE_TRUST" else "trust=key"):
        settings()
    with pytest.raises(ConfigurationError):
        configure(region="b")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"timeout": "1"}, r"configure\(timeout='1'\): want a number"),
        ({"timeout": True}, "want a number"),
        ({"timeout": float("inf")}, "not infinite"),
        ({"timout": 1}, "Did you mean timeout"),
        ({"peers": "a.example.com"}, "want a list"),
        ({"edge": "false"}, "want True or False"),
        ({"max_waiters": 1.5}, "whole number"),
        ({"mode": "dry_run"}, "enforce, dry-run, off"),
        ({"on_timeout": "redeliver"}, "raise, proceed"),
        ({"on_unproven": "redeliver"}, "raise, proceed"),
        ({"keys": {"a": b"short"}}, "at least 16"),
        ({"keys": {"a": "a text of enough characters"}}, "want bytes"),
    ],
)
def test_a_mistake_in_code_is_an_error_and_changes_nothing(words: SettingsWords, says: str) -> None:
    """CONF-2."""
    configure(region="b")
    with pytest.raises(ConfigurationError, match=says):
        configure(**words)
    assert settings() == Settings(region="b")


def test_an_unknown_variable_warns_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ANTIPODE_TIMEOUT", "5")
    reset_settings()
    with caplog.at_level(logging.WARNING, "antipode"):
        assert settings().timeout == 1.0
    assert "ANTIPODE_TIMEOUT is not known" in caplog.text
    assert "Did you mean ANTIPODE_TIMEOUT_MS?" in caplog.text


def test_the_settings_of_a_store_come_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPODE_STORE_BLOG_POSTS_REPLICAS", "redis://b1,redis://b2")
    monkeypatch.setenv("ANTIPODE_STORE_BLOG_POSTS_PRIMARY", "redis://a")
    monkeypatch.setenv("ANTIPODE_STORE_BLOG_POSTS_TIMEOUT_MS", "40")
    monkeypatch.setenv("ANTIPODE_STORE_BLOG_POSTS_MODE", "dry-run")
    reset_settings()
    found = store_settings("blog-posts")
    assert found == StoreSettings(("redis://b1", "redis://b2"), "redis://a", 0.04, Mode.DRY_RUN)
    assert store_settings("user-acl") == StoreSettings()
    assert timeout_of("blog-posts") == 0.04
    assert timeout_of("blog-posts", 0.5) == 0.5
    assert timeout_of("user-acl") == 1.0
    configure(timeout=2)
    assert timeout_of("blog-posts") == 2.0


def test_a_stores_mode_is_the_most_careful_that_anybody_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPODE_STORE_BLOG_POSTS_MODE", "dry-run")
    reset_settings()
    assert mode_of("blog-posts") is Mode.DRY_RUN
    assert mode_of("blog-posts", "enforce") is Mode.DRY_RUN
    assert mode_of("blog-posts", Mode.OFF) is Mode.OFF
    configure(mode="off")
    assert mode_of("user-acl") is Mode.OFF


def test_setting_keys_alone_means_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TRUST-2."""
    file = tmp_path / "keys"
    file.write_text(f"one {KEY}\n")
    monkeypatch.setenv("ANTIPODE_KEYS_FILE", str(file))
    reset_settings()
    assert settings().trust is Trust.KEY
    assert list(settings().keys) == ["one"]
    assert configure(trust="private").trust is Trust.PRIVATE
    assert KEY not in repr(setting_origins())
    assert repr(b"k" * 32) not in repr(setting_origins())


def test_a_bad_keys_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes(b"one \xff\xfe")
    monkeypatch.setenv("ANTIPODE_KEYS_FILE", str(file))
    reset_settings()
    with pytest.raises(ConfigurationError, match="ANTIPODE_KEYS_FILE"):
        settings()


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPODE_TIMEOUT_MS", "")
    monkeypatch.setenv("ANTIPODE_PEERS", " ")
    reset_settings()
    assert settings() == Settings()
