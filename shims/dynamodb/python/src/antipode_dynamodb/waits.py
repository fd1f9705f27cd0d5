"""What a read waits for before it is sent: wait on read, and `reading(after=…)` (spec BAR-50, BAR-51)."""

from __future__ import annotations

import time

from antipode.lineage import Lineage
from antipode.reading import Reading
from antipode.scope import Scope
from antipode.settings import Mode
from antipode.verdict import Verdict
from antipode.wait_on_read import behind, waited_in_vain
from antipode.waiting import wait_for_server

from antipode_dynamodb.binding import Binding


def wait_first(binding: Binding, reading: Reading | None, scope: Scope | None) -> None:
    """Waits in the client's own region; raises as a barrier does where it waited in vain."""
    after = reading.after if reading is not None else None
    if after is None and binding.waits and scope is not None:
        after = scope.lineage
    ids = [] if after is None else after.of_store(binding.store.name)
    if not ids:
        return
    began = time.monotonic()
    timeout = binding.store.timeout
    if scope is not None and scope.deadline is not None:
        timeout = min(timeout, max(scope.deadline - began, 0.0))
    follows = binding.store.mode is Mode.DRY_RUN
    verdict = wait_for_server(binding.server, Lineage(ids), 0.0 if follows else timeout)
    if verdict is Verdict.VISIBLE:
        return
    if follows:
        behind()
        return
    name = binding.store.name
    words = f"{name} at {binding.server.address}: {verdict}. The read waited for it {timeout * 1000:.0f} ms"
    waited_in_vain(name, words, time.monotonic() - began, scope, unproven=verdict is Verdict.UNPROVEN)
