"""The paper's example (section 2.2): a follower is told of a post that has not reached the follower's region yet.

    python python/examples/post_notification.py

prints

    without Antipode: 5 of 5 followers did not find the post
    with Antipode:    0 of 5 followers did not find the post

Four services in one process, two regions. `benchmarks/postnotification` has them as processes that speak HTTP.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import antipode
import antipode.memory

REQUESTS = 5
posts = antipode.memory.Store("blog-posts", regions=["a", "b"])
posts_a, posts_b = posts.client("a"), posts.client("b")


class Message(NamedTuple):
    """What goes through the queue: headers and a body, as in any broker."""

    headers: dict[str, str]
    post: str


notifications: queue.Queue[Message] = queue.Queue()


# Region A


def post_upload(post: str, text: str) -> None:
    """A user's request. In a service a middleware opens the scope."""
    with antipode.scope():
        post_storage(post, text)
        notifier(post)


def post_storage(post: str, text: str) -> None:
    posts_a.set(post, text)


def notifier(post: str) -> None:
    """Shims of queues write this header by themselves."""
    notifications.put(Message({"antipode-lineage": antipode.serialize()}, post))


# Region B


def follower_notify(*, wait: bool) -> bool:
    """Takes one message and reads the post that it speaks of; whether that was found."""
    message = notifications.get(timeout=10)
    with antipode.message_scope(message.headers):
        if wait:
            antipode.barrier(timeout=10)
        return posts_b.get(message.post) is not None


def not_found(*, wait: bool) -> int:
    """Runs the requests; for how many of them the follower did not find the post."""
    missing = 0
    with ThreadPoolExecutor(1) as region_b:
        for number in range(REQUESTS):
            post = f"{'with' if wait else 'without'}:{number}"
            posts.freeze("b")  # the link between the regions is slow just now
            found: Future[bool] = region_b.submit(follower_notify, wait=wait)
            post_upload(post, "Hello")
            if wait:  # with a barrier the follower is waiting by now, or will be
                later = threading.Timer(0.05, posts.heal, ["b"])
                later.start()
                missing += not found.result()
                later.join()
            else:
                missing += not found.result()
                posts.heal("b")
    return missing


def main() -> None:
    for words, wait in (("without Antipode:", False), ("with Antipode:   ", True)):
        print(words, not_found(wait=wait), "of", REQUESTS, "followers did not find the post")


if __name__ == "__main__":
    main()
