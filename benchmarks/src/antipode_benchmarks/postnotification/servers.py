"""The servers of a run, started by the lab, and what has to be on them before the first service."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from antipode._model.errors import ConfigurationError
from antipode.shim.administration import Administration, InitRequest, Level, StorePreparer, administration_of
from antipode_lab import Lab
from antipode_lab.model import StoreState
from rich.console import Console

from antipode_benchmarks.postnotification import queues, stores
from antipode_benchmarks.postnotification.hosts import RunFailed
from antipode_benchmarks.postnotification.options import STORE, Options

PREPARED_TIMEOUT_S = 10.0
"""How long the replicas may take to get what `antipode init` has run at the primary."""


class Servers(NamedTuple):
    """Where posts and queue are; nowhere what is embedded."""

    posts: stores.Place
    queues: dict[str, str]


@contextmanager
def servers(options: Options, console: Console, *, one_broker: bool = False) -> Iterator[Servers]:
    """The servers of the posts and of the queue, each in a lab of its own: a table can be either, with its own lag."""
    with posts_servers(options, console) as posts, queue_servers(options, console, one_broker=one_broker) as queue:
        yield Servers(posts, queue)


@contextmanager
def posts_servers(options: Options, console: Console) -> Iterator[stores.Place]:
    """Those of the posts."""
    with ExitStack() as labs:
        if options.post_storage == "memory":
            yield stores.Place({})
            return
        store = stores.module_of(options.post_storage)
        lags = [lag / 1000 for lag in options.lags_ms]
        yield store.prepare(_start(labs, console, options.post_storage, store.LAB, replicas=len(lags), lag=lags))


@contextmanager
def queue_servers(
    options: Options, console: Console, *, one_broker: bool = False, places: Collection[str] = ()
) -> Iterator[dict[str, str]]:
    """Those of the queue. `places`: exchanges of RabbitMQ, each with a queue of its own, in place of the one."""
    with ExitStack() as labs:
        notifier = None if options.notifier == "memory" else queues.module_of(options.notifier)
        if notifier is None or notifier.LAB is None:
            yield {}
            return
        lag = options.queue_lag_ms / 1000
        settings = dict(notifier.LAB)
        if one_broker and options.notifier == "rabbitmq":
            settings["one_broker"] = True
        if places:
            settings |= {"exchanges": dict.fromkeys(places, "fanout"), "queues": {name: name for name in places}}
        yield notifier.prepare(_start(labs, console, options.notifier, settings, replicas=1, lag=lag, queue_lag=lag))


def _start(labs: ExitStack, console: Console, kind: str, settings: Mapping[str, Any], **options: Any) -> StoreState:
    lab = Lab(kind, options={kind: dict(settings)}, **options)
    with console.status(f"Starting {kind} in two regions…"):
        labs.enter_context(lab)
    return lab.endpoints.stores[kind]


def prepare_antipode(posts: stores.Place) -> None:
    """What `antipode init STORE --at URL --run` does: tables of marks and the like, before the phase with Antipode."""
    url = posts.operator or posts.urls.get("a")
    if url is None:
        return
    try:
        shim = administration_of(url)
    except ConfigurationError:
        return  # a shim that offers nothing to operators needs nothing first
    if not isinstance(shim, StorePreparer):
        return
    for step in shim.preparations(url, InitRequest(STORE, posts.user, posts.options)):
        if step.run is not None:
            try:
                step.run()
            except Exception as error:
                raise RunFailed(f"antipode init: {step.text}: {error}") from error
    _await_replicas(shim, posts.urls.values())


def _await_replicas(shim: Administration, urls: Iterable[str]) -> None:
    """Tables and grants lag as all else does: asked before it has them, a replica is unproven.

    What is unproven there for another reason stays so, and the run shows it.
    """
    deadline = time.monotonic() + PREPARED_TIMEOUT_S
    for url in urls:
        while any(finding.level is Level.UNPROVEN for finding in shim.diagnose(url)) and time.monotonic() < deadline:
            time.sleep(0.05)
