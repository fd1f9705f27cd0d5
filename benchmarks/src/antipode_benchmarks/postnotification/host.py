"""A process that hosts services: `python -m antipode_benchmarks.postnotification.host SERVICE…`.

It binds a port for each service and prints them as one line of JSON, reads the setup as one line of JSON, starts the
services and prints a second line when they answer. Further setups change what it calls. It ends when its standard input
does, so it never outlives the command that started it, however that ends. benchmarks/services.md is the whole of it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import socket
import sys
import threading
import time
import traceback

import antipode
import uvicorn

from antipode_benchmarks.postnotification.options import Options, Setup
from antipode_benchmarks.postnotification.queues.memory import LaggedQueue
from antipode_benchmarks.postnotification.services import BUILD
from antipode_benchmarks.postnotification.services.site import Embedded, Site
from antipode_benchmarks.postnotification.stores.memory import create

START_TIMEOUT_S = 30.0


def bind() -> socket.socket:
    """A listening socket on a free port of loopback."""
    # The protocol is named because asyncio looks at it before it switches Nagle's algorithm off (40 ms a call).
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(512)
    return listener


def embed(options: Options) -> Embedded:
    """The stores that live in this process."""
    return Embedded(
        create(options) if options.post_storage == "memory" else None,
        LaggedQueue(options.queue_lag_ms / 1000) if options.notifier == "memory" else None,
    )


def serve(site: Site, listener: socket.socket) -> uvicorn.Server:
    """Starts a service's server in a thread with an event loop of its own; should it fail, the process ends."""
    app = BUILD[site.name](site)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        loop="asyncio",
        timeout_keep_alive=300,
        # After a large body asyncio would start the connection's next request in the context of the one before,
        # OpenTelemetry's span included (python/cpython#140947).
        reset_contextvars=True,
    )
    server = uvicorn.Server(config)

    def run() -> None:
        try:
            asyncio.run(server.serve(sockets=[listener]))
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    threading.Thread(target=run, name=site.name, daemon=True).start()
    return server


def main(services: list[str]) -> None:
    """Hosts the services until standard input ends."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    sys.setswitchinterval(0.001)  # several threads wake up to do little each
    listeners = {name: bind() for name in services}
    print(json.dumps({name: listener.getsockname()[1] for name, listener in listeners.items()}), flush=True)
    line = sys.stdin.readline()
    if not line:
        return
    setup = Setup.from_json(line)
    if not setup.antipode and setup.options.post_storage == "memory":
        # The embedded store is Antipode's own: switched off it is a plain store.
        antipode.configure(mode="off")
    embedded = embed(setup.options)
    sites = [Site(name, setup, embedded) for name in services]
    servers = [serve(site, listeners[site.name]) for site in sites]
    deadline = time.monotonic() + START_TIMEOUT_S
    while not all(server.started for server in servers):
        if time.monotonic() > deadline:
            raise TimeoutError("the services' servers did not start")
        time.sleep(0.005)
    gc.collect()
    gc.freeze()  # what was imported is not looked through again while there is something to measure
    print("ready", flush=True)
    for line in sys.stdin:
        further = Setup.from_json(line)
        for site in sites:
            site.setup = site.setup.routed(further)
        print("ready", flush=True)
    for server in servers:
        server.should_exit = True


if __name__ == "__main__":
    main(sys.argv[1:])
