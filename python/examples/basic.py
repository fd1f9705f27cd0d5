"""The smallest thing that Antipode does, on the store that is built in: no server, no configuration.

    python python/examples/basic.py

prints

    without a barrier: nothing
    with a barrier:    Hello
    what it proved:    blog-posts visible
    too little time:   blog-posts timed_out
"""

from __future__ import annotations

import antipode
import antipode.memory

# A store in two regions. What is written in a arrives in b half a second later.
posts = antipode.memory.Store("blog-posts", regions=["a", "b"], lag=0.5)
posts_a, posts_b = posts.client("a"), posts.client("b")


def shown(body: bytes | None) -> str:
    return "nothing" if body is None else body.decode()


def main() -> None:
    with antipode.scope():  # a middleware opens one for each request
        posts_a.set("post:42", "Hello")  # the write joins the request's lineage
        message = antipode.serialize()  # the lineage as text; clients and queues carry it along by themselves

    with antipode.message_scope(message):  # somebody in region b was told
        print("without a barrier:", shown(posts_b.get("post:42")))

        result = antipode.barrier(timeout=5.0)  # waits for post:42 here, or says why not
        print("with a barrier:   ", shown(posts_b.get("post:42")))
        print("what it proved:   ", *(f"{name} {store.verdict}" for name, store in result.stores.items()))

        posts_a.set("post:43", "Again")
        result = antipode.barrier(timeout=0.01, on_timeout="proceed")  # by default it raises BarrierTimeout
        print("too little time:  ", *(f"{name} {store.verdict}" for name, store in result.stores.items()))


if __name__ == "__main__":
    main()
