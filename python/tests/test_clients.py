"""What `wrap` gives for a client: the same type and the same connections, and the one passed in stays plain."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import antipode
import antipode.asgi
import antipode.httpx
import antipode.requests
import antipode.wsgi
import httpx
import pytest
import requests
from antipode import Lineage, WriteId
from antipode._model.errors import ConfigurationError
from web import wsgi_server

MINE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042)
THEIRS = WriteId.position("user-acl", "8371ab90c2d4e6f1", 57)


pytestmark = pytest.mark.usefixtures("own_propagators")


@pytest.fixture
def service() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A service that notes each request's headers and peer, and writes."""
    seen: list[dict[str, str]] = []

    def app(environ: Any, start_response: Any) -> list[bytes]:
        seen.append({name: str(value) for name, value in environ.items()})
        start_response("200 OK", [("antipode-lineage", Lineage([THEIRS]).serialize())])
        return [b"done"]

    with wsgi_server(app) as port:
        yield f"http://127.0.0.1:{port}/", seen


class OwnSession(requests.Session):
    """A session class of the application, as OAuth libraries have."""

    def get(self, url: str | bytes, **kwargs: Any) -> requests.Response:
        self.headers["X-Own"] = "1"
        return super().get(url, **kwargs)


def test_a_wrapped_session_is_of_the_same_type_and_shares_all(service: tuple[str, list[dict[str, str]]]) -> None:
    url, seen = service
    plain = OwnSession()
    plain.cookies.set("a", "b")
    wrapped = antipode.requests.wrap(plain)
    assert isinstance(wrapped, OwnSession)
    assert type(wrapped).__name__ == "OwnSession"
    assert wrapped.adapters is plain.adapters
    assert wrapped.cookies is plain.cookies
    assert antipode.requests.wrap(wrapped) is wrapped
    with antipode.scope() as scope:
        antipode.append(MINE)
        plain.get(url)
        assert scope.lineage == Lineage([MINE])
        wrapped.get(url)
        assert scope.lineage == Lineage([MINE, THEIRS])
    first, second = seen
    assert "HTTP_BAGGAGE" not in first
    assert second["HTTP_BAGGAGE"] == f"antipode={Lineage([MINE])}"
    assert second["HTTP_X_OWN"] == "1"


def test_a_wrapped_session_can_be_pickled(service: tuple[str, list[dict[str, str]]]) -> None:
    url, seen = service
    copy = pickle.loads(pickle.dumps(antipode.requests.wrap(requests.Session())))
    assert isinstance(copy, requests.Session)
    with antipode.scope():
        antipode.append(MINE)
        copy.get(url, timeout=5)
    assert "antipode=" in seen[0]["HTTP_BAGGAGE"]


def test_a_wrapped_client_is_of_the_same_type_and_shares_all(service: tuple[str, list[dict[str, str]]]) -> None:
    url, seen = service
    with httpx.Client(headers={"x-own": "1"}) as plain:
        wrapped = antipode.httpx.wrap(plain)
        assert isinstance(wrapped, httpx.Client)
        assert antipode.httpx.wrap(wrapped) is wrapped
        with antipode.scope() as scope:
            antipode.append(MINE)
            plain.get(url)
            assert scope.lineage == Lineage([MINE])
            wrapped.get(url)
            assert scope.lineage == Lineage([MINE, THEIRS])
    assert "HTTP_BAGGAGE" not in seen[0]
    assert seen[1]["HTTP_BAGGAGE"] == f"antipode={Lineage([MINE])}"
    assert seen[1]["HTTP_X_OWN"] == "1"


async def test_transports_of_tests_work() -> None:
    """httpx's MockTransport is of both kinds."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"antipode-lineage": Lineage([THEIRS]).serialize()}, text="done")

    with antipode.scope() as scope:
        with httpx.Client(transport=httpx.MockTransport(answer)) as client:
            antipode.httpx.wrap(client).get("http://b/")
        assert scope.lineage == Lineage([THEIRS])
    with antipode.scope() as scope:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as other:
            await antipode.httpx.wrap(other).get("http://b/")
        assert scope.lineage == Lineage([THEIRS])


def test_an_error_of_the_connection_stays_the_clients_own() -> None:
    with antipode.scope() as scope:
        antipode.append(MINE)
        with pytest.raises(requests.ConnectionError):
            antipode.requests.wrap(requests.Session()).get("http://127.0.0.1:1/", timeout=5)
        with pytest.raises(httpx.ConnectError), httpx.Client() as client:
            antipode.httpx.wrap(client).get("http://127.0.0.1:1/")
        assert scope.lineage == Lineage([MINE])


def test_calls_of_many_threads_join_one_scope(service: tuple[str, list[dict[str, str]]]) -> None:
    """SCOPE-2."""
    url, seen = service
    http = antipode.requests.wrap(requests.Session())

    def call(_: int) -> requests.Response:
        return http.get(url, timeout=5)

    with antipode.scope() as scope, ThreadPoolExecutor(8) as pool:
        antipode.append(MINE)
        list(pool.map(antipode.carry(call), range(40)))
        assert scope.lineage == Lineage([MINE, THEIRS])
    assert len(seen) == 40


def test_wrong_settings_of_trust_are_said_at_once() -> None:
    async def asgi(scope: Any, receive: Any, send: Any) -> None: ...

    def wsgi(environ: Any, start_response: Any) -> list[bytes]:
        return []

    antipode.configure(peers=["a b"])
    with pytest.raises(ConfigurationError, match="ANTIPODE_PEERS"):
        antipode.requests.wrap(requests.Session())
    with pytest.raises(ConfigurationError, match="ANTIPODE_PEERS"), httpx.Client() as client:
        antipode.httpx.wrap(client)
    with pytest.raises(ConfigurationError, match="ANTIPODE_PEERS"):
        antipode.asgi.Middleware(asgi)
    with pytest.raises(ConfigurationError, match="ANTIPODE_PEERS"):
        antipode.wsgi.Middleware(wsgi)


@pytest.mark.parametrize("library", ["requests", "httpx", "httpx async"])
@pytest.mark.parametrize(("peers", "carries"), [([], False), (["proxy.example.com"], True)])
async def test_an_http_proxy_is_judged_beside_the_target(
    service: tuple[str, list[dict[str, str]]],
    library: str,
    peers: list[str],
    carries: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TRUST-35: it reads what goes through it in plain text, and may answer by itself."""
    real = socket.getaddrinfo

    def resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
        return real("127.0.0.1" if host in {"proxy.example.com", b"proxy.example.com"} else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    antipode.configure(peers=peers)
    url, seen = service
    proxy = url.replace("127.0.0.1", "proxy.example.com")
    with antipode.scope() as scope:
        antipode.append(MINE)
        if library == "requests":
            session = antipode.requests.wrap(requests.Session())
            assert session.get("http://post-storage/", proxies={"http": proxy}).text == "done"
        elif library == "httpx":
            with antipode.httpx.wrap(httpx.Client(proxy=proxy)) as client:
                assert client.get("http://post-storage/").text == "done"
        else:
            async with antipode.httpx.wrap(httpx.AsyncClient(proxy=proxy)) as other:
                assert (await other.get("http://post-storage/")).text == "done"
        assert ("HTTP_BAGGAGE" in seen[0]) is carries
        assert scope.lineage == (Lineage([MINE, THEIRS]) if carries else Lineage([MINE]))
