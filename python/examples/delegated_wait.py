"""The paper's example (section 2.2) where follower-notify has no access to the posts: it asks who owns them.

    python python/examples/delegated_wait.py

prints

    without a barrier: 5 of 5 followers were shown nothing
    with a barrier:    0 of 5 followers were shown nothing

post-storage is a process of its own, with the store and a region that lags. follower-notify reads a post there
(`GET /posts/…`), and before that waits by asking there.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from socketserver import ThreadingMixIn
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import antipode
import antipode.delegated
import antipode.memory
import antipode.wsgi

REQUESTS = 5


# post-storage: the owner


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Not on standard error."""


class Threads(ThreadingMixIn, WSGIServer):
    daemon_threads = True


def post_storage() -> None:
    """Prints its port, and ends with its standard input."""
    posts = antipode.memory.Store("blog-posts", regions=["a", "b"])
    posts_a, posts_b = posts.client("a"), posts.client("b")
    posts.register("b")

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        post = environ["PATH_INFO"].removeprefix("/posts/")
        if environ["REQUEST_METHOD"] == "GET":
            found = posts_b.get(post)
            start_response("200 OK" if found else "404 Not Found", [])
            return [found or b""]
        if post == "/link-heals":
            posts.heal("b")
        else:
            posts.freeze("b")  # the link between the regions is slow just now
            posts_a.set(post, "Hello")
        start_response("201 Created", [])
        return []

    app: Any = antipode.wsgi.Middleware(application, answers_waits=True)  # type: ignore[arg-type]
    with make_server("127.0.0.1", 0, app, server_class=Threads, handler_class=Quiet) as server:
        print(server.server_port, flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        server.shutdown()


# follower-notify: no store, no credentials


def follower_notify(url: str, headers: dict[str, str], post: str, *, wait: bool) -> bool:
    """One notification; whether the follower is shown the post."""
    with antipode.message_scope(headers):
        if wait:
            antipode.barrier(timeout=10)
        try:
            with urlopen(f"{url}/posts/{post}", timeout=10) as answer:
                return bool(answer.read())
        except HTTPError as error:
            error.close()
            return False


def send(url: str, path: str) -> dict[str, str]:
    """A POST; the header of a notification of what it wrote, as a shim of a queue has it."""
    with urlopen(Request(url + path, method="POST"), timeout=10) as answer:
        return {"antipode-lineage": answer.headers["antipode-lineage"] or "1"}


def shown_nothing(url: str, *, wait: bool) -> int:
    """Runs the requests; how many followers are shown nothing."""
    missing = 0
    for number in range(REQUESTS):
        post = f"{'with' if wait else 'without'}-{number}"
        headers = send(url, f"/posts/{post}")
        later = threading.Timer(0.05 if wait else 10, send, [url, "/link-heals"])
        later.start()
        missing += not follower_notify(url, headers, post, wait=wait)
        if not wait:
            later.cancel()
            send(url, "/link-heals")
        later.join()
    return missing


def main() -> None:
    owner = subprocess.Popen([sys.executable, __file__, "owner"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    url = f"http://127.0.0.1:{int(owner.stdout.readline())}"
    antipode.delegated.register("blog-posts", owner=url)
    for words, wait in (("without a barrier:", False), ("with a barrier:   ", True)):
        print(words, shown_nothing(url, wait=wait), "of", REQUESTS, "followers were shown nothing")
    owner.communicate()


if __name__ == "__main__":
    if sys.argv[1:] == ["owner"]:
        post_storage()
    else:
        main()
