"""The page of Django (python/docs/frameworks/django.md), in a process of its own: Django has one setup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pages import STORES, code_of

SETTINGS = """
SECRET_KEY = "x"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "blog.sqlite3"}}
DEBUG_PROPAGATE_EXCEPTIONS = False
"""
URLS = """
import views
from django.urls import path

urlpatterns = [
    path("posts/<int:post_id>", views.read_post),
    path("posts/<int:post_id>/async", views.read_post_async),
    path("posts/<int:post_id>/<str:body>", views.write_post),
]
"""
PROGRAM = """
import importlib, logging, sys
import antipode, antipode.httpx, httpx
from antipode import Lineage
from web import asgi_server, wsgi_server

way = sys.argv[1]
logging.disable(logging.CRITICAL)
application = importlib.import_module(way).application
serve = wsgi_server if way == "wsgi" else asgi_server
import notifications, stores

with antipode.httpx.wrap(httpx.Client(trust_env=False, timeout=10)) as http, serve(application) as port:
    url = f"http://127.0.0.1:{port}/posts/1"
    with antipode.scope() as scope:
        read = url if way == "wsgi" else f"{url}/async"
        assert http.get(read).status_code == 404
        assert http.get(f"{url}/hello").text == "1"
        assert list(scope.lineage.stores) == ["blog-posts"]
        assert http.get(read).text == "hello"
        [(post_id, text)] = notifications.sent
        assert (post_id, Lineage.deserialize(text)) == (1, scope.lineage)
        assert Lineage.deserialize(text).is_complete()
    with antipode.message_scope(text):
        assert antipode.barrier(timeout=5).complete
    with antipode.scope() as scope:
        assert http.get(f"{url}/refused").status_code == 500
        assert len(notifications.sent) == 1
        assert list(scope.lineage.stores) == ["blog-posts"]  # the embedded store has kept it all the same
    if way == "asgi":
        with antipode.scope():  # a sync view, in a thread
            stores.posts.set("post:2", "direct")
            answer = http.get(f"http://127.0.0.1:{port}/posts/2")
            assert answer.status_code in {200, 500}, answer
print("done")
"""


def run(way: str, folder: Path) -> None:
    modules = {"stores": STORES, **code_of("django.md"), "settings": SETTINGS, "urls": URLS, "program": PROGRAM}
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(code)
    path = os.pathsep.join([str(folder), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "program.py", way],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "done"), ran.stderr


def test_by_wsgi(tmp_path: Path) -> None:
    run("wsgi", tmp_path)


def test_by_asgi(tmp_path: Path) -> None:
    run("asgi", tmp_path)
