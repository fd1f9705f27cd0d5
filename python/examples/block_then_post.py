"""The paper's example of two requests (section 4.3): Alice blocks Bob, then posts; Bob must not hear of the post.

    python python/examples/block_then_post.py

prints

    without a session: Bob was told of 5 of 5 posts though he was blocked
    with a session:    Bob was told of 0 of 5 posts though he was blocked

The block and the post are two requests of one browser, and so two lineages: `barrier()` in the other region waits for
the post alone, unless the middleware keeps the user's session.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from http.cookies import SimpleCookie
from typing import Any

import antipode
import antipode.memory
import antipode.session
import antipode.wsgi

REQUESTS = 5
posts = antipode.memory.Store("blog-posts", regions=["a", "b"])
acl = antipode.memory.Store("user-acl", regions=["a", "b"])
notifications: queue.Queue[tuple[dict[str, str], str]] = queue.Queue()


# Region A: a service with two requests


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    _, action, name = environ["PATH_INFO"].split("/")
    if action == "block":
        acl.client("a").set(name, "blocked")
    else:
        posts.client("a").set(name, "Hello")
        notifications.put(({"antipode-lineage": antipode.serialize()}, name))
    start_response("204 No Content", [])
    return []


# Region B


def follower_notify() -> bool:
    """Takes one message; whether Bob is told of the post that it speaks of."""
    headers, post = notifications.get(timeout=10)
    with antipode.message_scope(headers):
        antipode.barrier(timeout=10)
        assert posts.client("b").get(post) is not None
        return acl.client("b").get(f"bob-{post}") is None


class Browser:
    """Alice's: it sends back the cookies that it got."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._cookies: SimpleCookie = SimpleCookie()

    def post(self, path: str) -> None:
        def start_response(status: str, headers: list[tuple[str, str]], _: Any = None) -> None:
            for name, value in headers:
                if name == "Set-Cookie":
                    self._cookies.load(value)

        kept = {name: morsel for name, morsel in self._cookies.items() if morsel["max-age"] != "0"}
        cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in kept.items())
        environ = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "REMOTE_ADDR": "127.0.0.1", "HTTP_COOKIE": cookies}
        body = self._app(environ, start_response)
        list(body)
        body.close()


def told(session: antipode.session.Session | None) -> int:
    """Runs the requests; how often Bob is told though he is blocked."""
    alice = Browser(antipode.wsgi.Middleware(application, session=session))
    count = 0
    with ThreadPoolExecutor(1) as region_b:
        for number in range(REQUESTS):
            post = f"{'with' if session else 'without'}-{number}"
            acl.freeze("b")  # the link between the regions is slow for this store just now
            alice.post(f"/block/bob-{post}")
            alice.post(f"/post/{post}")
            heard: Future[bool] = region_b.submit(follower_notify)
            if session:  # the follower is waiting by now, or will be
                later = threading.Timer(0.05, acl.heal, ["b"])
                later.start()
                count += heard.result()
                later.join()
            else:
                count += heard.result()
                acl.heal("b")
    return count


def main() -> None:
    antipode.configure(keys={"example": b"a key for examples alone"}, trust="private")
    for words, session in (("without a session:", None), ("with a session:   ", antipode.session.Cookie(secure=False))):
        print(words, "Bob was told of", told(session), "of", REQUESTS, "posts though he was blocked")


if __name__ == "__main__":
    main()
