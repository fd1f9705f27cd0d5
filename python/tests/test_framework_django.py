"""The page of Django (python/docs/frameworks/django.md), in a process of its own: Django has one setup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from antipode_lab.fixtures import LabFactory
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


TABS_SETTINGS = """
INSTALLED_APPS = ["django.contrib.sessions"]
SESSION_ENGINE = "django.contrib.sessions.backends.db"
MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware", "lineages.middleware"]
"""
TABS_URLS = """
import threading
import antipode, antipode.session
from django.http import HttpResponse
from django.urls import path
from stores import posts

loaded = threading.Barrier(2)
saved = threading.Event()

def page(request):
    return HttpResponse(antipode.serialize())

def tab(request, number):
    loaded.wait(60)
    antipode.append(antipode.WriteId.position(f"tab-{number}", "e", 1))
    request.session[f"tab-{number}"] = 1
    if number == 2:
        assert saved.wait(60)
    return HttpResponse("done")

def clear(request):
    request.session.flush()
    return HttpResponse("done")

def log_out(request):
    antipode.session.forget()
    return clear(request)

urlpatterns = [
    path("tab/<int:number>", tab), path("page", page), path("clear", clear), path("log-out", log_out),
]
"""
TABS = """
import logging, threading
import django, httpx
from antipode import Lineage
logging.disable(logging.CRITICAL)
from wsgi import application
from django.core.management import call_command
import urls

call_command("migrate", verbosity=0)

def get(path):
    transport = httpx.WSGITransport(application, remote_addr="127.0.0.1")
    with httpx.Client(transport=transport, base_url="http://x.test", cookies=cookies) as client:
        answer = client.get(path)
    assert answer.status_code == 200, answer.text
    cookies.update(answer.cookies)
    return answer.text

cookies = {}
assert get("/page") == "1"
tabs = [threading.Thread(target=get, args=(f"/tab/{number}",)) for number in (1, 2)]
for tab in tabs:
    tab.start()
tabs[0].join(60)
urls.saved.set()
tabs[1].join(60)
for _ in range(2):
    assert sorted(Lineage.deserialize(get("/page")).stores) == ["tab-1", "tab-2"]
get("/clear")
assert sorted(Lineage.deserialize(get("/page")).stores) == ["tab-1", "tab-2"]
get("/log-out")
assert get("/page") == "1"
print("done")
"""


def test_tabs_side_by_side(tmp_path: Path, lab_factory: LabFactory) -> None:
    """SESS-14, SESS-16, SESS-17: Django saves the session of the one over the other's; its lineage stays."""
    url = lab_factory("redis").redis.server("a").url
    more = {"settings": f"{SETTINGS}{TABS_SETTINGS}LINEAGES = {url!r}\n", "urls": TABS_URLS, "program": TABS}
    run("wsgi", tmp_path, **more)


def run(way: str, folder: Path, **more: str) -> None:
    modules = {"stores": STORES, **code_of("django.md"), "settings": SETTINGS, "urls": URLS, "program": PROGRAM, **more}
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
