"""The pytest fixtures, as a test of ours and of others uses them."""

from __future__ import annotations

from pathlib import Path

import pytest
from antipode_lab import LabError
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.redis import RedisStore

ports: list[int] = []
HOME = Path.home()


@pytest.mark.parametrize("turn", [1, 2])
def test_the_module_s_redis_is_one_and_is_healed_for_each_test(module_redis_lab: RedisStore, turn: int) -> None:
    ports.append(module_redis_lab.server("a").port)
    assert len(set(ports)) == 1
    assert {s.name: s.link for s in module_redis_lab.status()} == {"a": None, "b1": "up", "b2": "up"}
    assert {s.name: s.lag_ms for s in module_redis_lab.status()} == {"a": 0, "b1": 80, "b2": 120}
    module_redis_lab.partition("b1")


def test_a_factory_s_labs_are_separate(lab_factory: LabFactory) -> None:
    first, second = lab_factory("redis"), lab_factory("redis", lag="1ms")
    first.redis.client("a").set("k", "1")
    assert second.redis.client("a").get("k") is None
    first.close()
    with pytest.raises(LabError, match="not running"):
        first.redis.partition("b1")
    assert second.redis.client("b1").ping()


@pytest.mark.redis_lab(replicas=3, lag="2ms")
def test_the_marker_gives_the_arguments(redis_lab: RedisStore) -> None:
    assert redis_lab.replicas == ["b1", "b2", "b3"]
    assert redis_lab.server("b3").lag_ms == 2


CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def port(folder_lab_factory):
    return folder_lab_factory("redis", replicas=1).redis.server("a").port
"""
SHARES = """
from pathlib import Path

def test_shares(port):
    with Path({saw!r}).open("a") as saw:
        print(port, file=saw)
"""
AFTER = """
import socket
from pathlib import Path

def test_after():
    ports = Path({saw!r}).read_text().split()
    assert len(ports) == 2 and len(set(ports)) == 1  # both files of the folder before shared one lab
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(ports[0]))) != 0, "it is still up"
"""


def test_a_folder_s_labs_end_when_it_is_left(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the command line comes back to the folder."""
    monkeypatch.setenv("HOME", str(HOME))  # what was built once is in its cache
    files = {
        "first/conftest.py": CONFTEST,
        "first/test_one.py": SHARES,
        "first/test_two.py": SHARES,
        "second/test_after.py": AFTER,
    }
    for name, text in files.items():
        path = pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(saw=str(pytester.path / "saw")))
    ran = pytester.runpytest_subprocess("first/test_one.py", "second/test_after.py", "first/test_two.py")
    ran.assert_outcomes(passed=3)
