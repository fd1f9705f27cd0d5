"""Every store answers operators alike: `antipode init` and `antipode doctor` (SHIM-3, EPOCH-26)."""

from __future__ import annotations

import time

import pytest
from antipode.cli.asking import ask
from antipode.shim.administration import (
    Administration,
    InitRequest,
    Level,
    StorePreparer,
    administration_of,
    found_shims,
)

URLS = {
    "redis": "redis://ann:s3cret@{place}/0",
    "rabbitmq": "amqp://ann:s3cret@{place}/blog#posts.tap",
    "postgresql": "postgresql://ann:s3cret@{place}/blog",
    "mysql": "mysql://ann:s3cret@{place}/blog",
    "s3": "s3+http://ann:s3cret@{place}/posts?region=eu-central-1",
    "dynamodb": "dynamodb+http://ann:s3cret@{place}/eu-central-1",
    "sns-sqs": "sqs+http://ann:s3cret@{place}/123456789012/posts-tap?region=eu-central-1",
    "activemq": "stomp://ann:s3cret@{place}#antipode.tap.posts",
    "mongodb": "mongodb://ann:s3cret@{place}/blog",
}
OPTIONS = {"activemq": {"queue": "posts"}}
NOBODY = "127.0.0.1:1"
"""A place where no server listens."""
SHIMS = [found for found in found_shims() if found.name != "memory"]


def test_every_installed_shim_is_looked_at() -> None:
    assert sorted(found.name for found in SHIMS) == sorted(URLS)


@pytest.mark.parametrize("found", SHIMS, ids=lambda found: found.name)
def test_a_shim_answers_for_its_schemes(found: object) -> None:
    shim = getattr(found, "shim", None)
    assert isinstance(shim, Administration), getattr(found, "error", "")
    assert shim.schemes
    for scheme in shim.schemes:
        assert administration_of(f"{scheme}://somewhere") is shim


@pytest.mark.parametrize("kind", sorted(URLS))
def test_what_a_store_needs_is_listed_without_asking_a_server(kind: str) -> None:
    url = URLS[kind].format(place=NOBODY)
    shim = administration_of(url)
    assert isinstance(shim, StorePreparer)
    assert all(word and told for word, told in shim.preparation_options.items())
    begun = time.monotonic()
    steps = shim.preparations(url, InitRequest("blog-posts", "bob", OPTIONS.get(kind, {})))
    assert time.monotonic() - begun < 10, "it asked somebody"
    assert steps
    for step in steps:
        assert step.tool
        assert step.text
        assert step.why
        assert "s3cret" not in step.tool + step.text + step.why
    assert any("bob" in step.text for step in steps) or kind in {"s3", "dynamodb", "activemq"}, (
        "rights are given to somebody"
    )
    assert [step.text for step in steps] == [
        step.text for step in shim.preparations(url, InitRequest("blog-posts", "bob", OPTIONS.get(kind, {})))
    ]


@pytest.mark.parametrize("kind", sorted(URLS))
def test_a_server_that_is_not_there_is_no_clean_bill(kind: str) -> None:
    """`antipode doctor` says that it could not look, within its patience and without the password."""
    url = URLS[kind].format(place=NOBODY)
    answer = ask(url, lambda: administration_of(url).diagnose(url))
    assert answer.in_time
    if answer.value is None:
        assert answer.error
        assert "s3cret" not in answer.error
    else:
        assert {finding.level for finding in answer.value} & {Level.UNKNOWN, Level.UNPROVEN}
        assert "s3cret" not in repr(answer.value)
