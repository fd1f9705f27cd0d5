"""Django's own connections, wrapped as its page says: python/docs/frameworks/django.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import antipode
import django  # type: ignore[import-untyped]
import pytest
from antipode import Lineage
from antipode.messages import outgoing_message
from antipode.testing import isolated
from antipode_lab.stores.postgresql import PostgresqlStore
from django.conf import settings  # type: ignore[import-untyped]
from pg_regions import STORE

PAGE = Path(__file__).resolve().parents[4] / "python" / "docs" / "frameworks" / "django.md"


def of(url: str) -> dict[str, Any]:
    """A server as Django's settings name it."""
    words = urlsplit(url)
    place = {"HOST": words.hostname, "PORT": words.port, "USER": words.username, "NAME": words.path.lstrip("/")}
    return {"ENGINE": "django.db.backends.postgresql", **place}


@pytest.fixture(scope="module")
def model(quiet_lab: PostgresqlStore) -> Any:
    """A model of the lab's table of posts, on connections that the page's code records."""
    settings.configure(
        INSTALLED_APPS=[], DATABASES={"default": of(quiet_lab.url("a")), "replica": of(quiet_lab.url("b1"))}
    )
    django.setup()
    from django.db import models  # type: ignore[import-untyped]

    class Post(models.Model):  # type: ignore[misc]
        key = models.TextField(primary_key=True)
        value = models.TextField()

        class Meta:
            app_label = "posts"
            db_table = "posts"
            managed = False

    return Post


@pytest.fixture
def post(model: Any) -> Iterator[Any]:
    from django.db import connections

    [code] = re.findall(r"^```python\n# recording\.py.*?\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    with isolated():
        connections.close_all()
        exec(code)
        with connections["default"].cursor() as cursor:
            cursor.execute("DELETE FROM posts")
        connections.close_all()
        yield model
        connections.close_all()


def test_what_a_model_saves_is_waited_for(post: Any, quiet_lab: PostgresqlStore) -> None:
    with antipode.scope() as scope:
        post.objects.create(key="a", value="1")
        [position] = scope.lineage
        assert position.is_position
        assert antipode.barrier(timeout=20).complete
        with quiet_lab.connect("b1", user="app") as connection:
            row = connection.execute("SELECT value FROM posts WHERE key = 'a'").fetchone()
        assert row == ("1",)
        assert post.objects.get(key="a").value == "1"
        assert list(scope.lineage) == [position]  # a read is no write
        post.objects.filter(key="a").update(value="2")
        assert list(scope.lineage) != [position]


def test_a_block_is_recorded_at_its_commit(post: Any) -> None:
    """SCOPE-14, SCOPE-16: what leaves inside of it is marked; `on_commit` runs when it has its position."""
    from django.db import connection, transaction

    texts: dict[str, str | None] = {}

    def publish(name: str) -> None:
        texts[name] = outgoing_message()

    with antipode.scope() as scope:
        with transaction.atomic():
            post.objects.create(key="b", value="1")
            publish("inside")
            transaction.on_commit(lambda: publish("after"))
            with transaction.atomic():
                post.objects.create(key="c", value="1")
            with connection.cursor() as cursor:
                cursor.execute("UPDATE posts SET value = '2' WHERE key = 'b'")
            assert not list(scope.lineage)
        assert scope.pending == ()
        assert texts["inside"] is not None
        assert Lineage.deserialize(texts["inside"]).incomplete == {STORE}
        assert texts["after"] is not None
        assert Lineage.deserialize(texts["after"]) == scope.lineage
        assert Lineage.deserialize(texts["after"]).is_complete()
        assert antipode.barrier(timeout=20).complete


def test_a_rollback_leaves_nothing(post: Any) -> None:
    """SCOPE-17: nor does it publish."""
    from django.db import transaction

    published: list[str] = []
    with antipode.scope() as scope:

        def write() -> None:
            with transaction.atomic():
                post.objects.create(key="d", value="1")
                transaction.on_commit(lambda: published.append("d"))
                raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            write()
        assert scope.lineage == Lineage()
        assert scope.lineage.is_complete()
        assert scope.pending == ()
        assert published == []
        assert not post.objects.filter(key="d").exists()


def test_a_new_connection_is_wrapped_too(post: Any) -> None:
    from django.db import connection

    with antipode.scope() as scope:
        post.objects.create(key="e", value="1")
        first = scope.lineage
        connection.close()
        post.objects.create(key="f", value="1")
        assert first <= scope.lineage
        assert first != scope.lineage
        connection.close_if_unusable_or_obsolete()
        assert [each.key for each in post.objects.filter(key__in=["e", "f"]).iterator()] == ["e", "f"]


def test_a_barrier_before_a_replicas_alias_is_used(post: Any, quiet_lab: PostgresqlStore) -> None:
    """BAR-52: what `objects.using("replica")` reads is waited for in a process's first request, too."""
    with quiet_lab.connect("b1") as operator, antipode.scope():
        operator.execute("SELECT pg_wal_replay_pause()")
        try:
            post.objects.create(key="g", value="1")
            assert not antipode.barrier(timeout=0.3, on_timeout="proceed").satisfied
        finally:
            operator.execute("SELECT pg_wal_replay_resume()")
        assert antipode.barrier(timeout=30).complete
        assert post.objects.using("replica").get(key="g").value == "1"


def test_an_iterator_over_what_was_there_before(post: Any, quiet_lab: PostgresqlStore) -> None:
    """SHIM-48: Django's cursor at the server shows the moment at which it was opened."""
    import antipode_postgresql
    from django.db import connections

    antipode_postgresql.wrap(connections["replica"], store=STORE, wait_on_read=True, timeout=20)
    connections.close_all()
    with antipode.scope():
        for number in range(5):
            post.objects.create(key=str(number), value="1")
        rows = post.objects.using("replica").iterator(chunk_size=2)
        assert next(rows)
        assert len(list(post.objects.using("replica").iterator(chunk_size=2))) == 5
        post.objects.create(key="behind", value="1")
        with pytest.raises(antipode.BarrierUnproven, match="moment that is past"):
            list(rows)
