"""Faults of this process are no silence of a server (BAR-61)."""

from __future__ import annotations

import errno
import subprocess
import sys
from typing import Final

import pytest
from antipode._base.own_faults import is_own_fault

_MANY_FILES: Final = """
import os, resource
import antipode
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
antipode.configure(replica_out_after=0.3, free_path_ttl=0)
store = antipode.memory.Store("posts", regions=["a", "b"], lag=0.01)
a, b = store.client("a"), store.client("b")
files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
store.freeze("b")
with antipode.scope():
    a.set("key", b"v")
    for _ in range(3):
        late = antipode.barrier(timeout=0.6, on_timeout="proceed", on_unproven="proceed")
        assert not late.satisfied, late.explain()
        assert not late.stores["posts"].left_out, late.explain()
    store.heal("b")
    assert antipode.barrier(timeout=50.0).complete
    assert b.get("key") == b"v"
print("whole")
"""


def test_a_process_with_more_files_than_select_takes_is_judged_like_any_other() -> None:
    done = subprocess.run([sys.executable, "-c", _MANY_FILES], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "whole\n", done.stderr
    assert "AP209" not in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.EMFILE, "none"),
        RuntimeError("can't start new thread"),
        ConnectionError("Error 24 connecting to localhost:1. Too many open files."),
    ],
    ids=str,
)
def test_it_is_known_by_its_number_its_words_or_its_cause(error: Exception) -> None:
    assert is_own_fault(error)
    wrapper = ValueError("the client's own")
    wrapper.__cause__ = error
    assert is_own_fault(wrapper)


def test_a_server_that_is_away_is_none_and_a_ring_of_causes_ends() -> None:
    first, second = ConnectionRefusedError(errno.ECONNREFUSED, "refused"), ValueError("no")
    first.__cause__, second.__cause__ = second, first
    assert not is_own_fault(first)
