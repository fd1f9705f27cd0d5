"""Our own connections are made anew beside those that answer (spec BAR-69)."""

from __future__ import annotations

import time
from typing import Any, cast
from uuid import uuid4

import antipode
import pytest
from antipode._engine.server import ServerPoller
from antipode._store.store import registry
from antipode_mysql.targets import Target
from sql_regions import STORE, Posts

_LIFE_S = 600.0
_LEFT_S = 60.0
_LOGIN_S = 2.0


def test_a_login_that_takes_longer_than_barriers_wait(posts: Posts, monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-69: nobody stands still while the next connection is opened, with the channel that belongs to it."""
    antipode.configure(reconnect=_LIFE_S, free_path_ttl=0)
    lineage = posts.write(uuid4().hex)
    assert antipode.barrier(lineage, timeout=60).satisfied
    connect = Target.connect

    def late(self: Target, timeout: float) -> Any:
        time.sleep(_LOGIN_S)
        return connect(self, timeout)

    monkeypatch.setattr(Target, "connect", late)
    servers = registry().need(STORE).servers()
    before = [each.session for each in servers]
    for each in servers:
        cast("ServerPoller", each)._renewal._made_at = time.monotonic() - _LIFE_S + _LEFT_S
    deadline = time.monotonic() + _LEFT_S
    while any(each.session is session for each, session in zip(servers, before, strict=True)):
        assert time.monotonic() < deadline
        assert antipode.barrier(lineage, timeout=_LOGIN_S, on_timeout="proceed").satisfied
    assert all(each.session.waiter is not None for each in servers)
    assert antipode.barrier(lineage, timeout=_LOGIN_S, on_timeout="proceed").satisfied
