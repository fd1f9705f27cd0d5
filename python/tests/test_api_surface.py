"""Every public name, with the signature that is documented for all languages, and errors as one tree."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import fields
from enum import Enum
from typing import Any

import antipode
import antipode.asgi
import antipode.delegated
import antipode.grpc
import antipode.httpx
import antipode.memory
import antipode.propagation
import antipode.requests
import antipode.session
import antipode.shim
import antipode.testing
import antipode.wsgi
import pytest
from antipode._base.setting_fields import WORDS

SIGNATURES: dict[str, str] = {
    # values
    "WriteId": "store, key, version",
    "WriteId.position": "store, epoch, counter",
    "Ordered": "epoch, counter",
    "Opaque": "mark",
    "Lineage.including": "self, write_id, *more",
    "Lineage.without": "self, what",
    "Lineage.compare": "self, other",
    "Lineage.serialize": "self",
    "Lineage.deserialize": "text",
    # scopes and the paper's verbs
    "current_scope": "",
    "root": "",
    "stop": "",
    "append": "*ids",
    "remove": "what=None, *, incomplete=False",
    "transfer": "lineage",
    "serialize": "",
    "deserialize": "text",
    "scope": "lineage=Lineage('1')",
    "detached_scope": "",
    "message_scope": "source, *, lineage_in=None, delivery=None, sender='a message'",
    "carry": "function",
    "carry_all": "executor",
    "reading": "after=None, *, merge=False",
    "Scope.append": "self, *ids",
    "Scope.remove": "self, what=None, *, incomplete=False",
    "Scope.transfer": "self, lineage",
    "Scope.stop": "self",
    # barrier
    "barrier": (
        "lineage=None, *, timeout=the default, stores=None, reach=None, require_complete=False, dry_run=None, "
        "on_timeout=None, on_unproven=None, on_vacuous=None"
    ),
    "read_or_fallback": "read, fallback, *, on_unproven='raise', **options",
    "read_or_fallback_async": "read, fallback, *, on_unproven='raise', **options",
    "BarrierResult.explain": "self",
    # settings and stores
    "configure": "**words",
    "settings": "",
    "stores": "",
    # both directions of HTTP and gRPC, and any other transport
    "asgi.Middleware": "app, *, edge=None, session=None, answers_waits=False",
    "wsgi.Middleware": "app, *, edge=None, session=None, answers_waits=False",
    "session.Cookie": "name=None, *, path='/', domain=None, secure=True, same_site='Lax', bind=None",
    "session.forget": "",
    "session.Entry": "of, *, has_rows=False",
    "session.join_from": "kept",
    "session.keep_in": "kept, *, has_rows=False",
    "delegated.register": "store, *, owner, timeout=None",
    "requests.wrap": "session",
    "httpx.wrap": "client",
    "grpc.server_interceptor": "*, edge=None",
    "grpc.aio_server_interceptor": "*, edge=None",
    "grpc.client_interceptor": "target",
    "grpc.aio_client_interceptors": "target",
    "celery.instrument": "app",
    "faststream.Middleware": "msg, /, *, context",
    "propagation.extract_request": "headers, peer=None, *, edge=None",
    "propagation.inject_request": "headers, host",
    "propagation.extract_response": "headers, host",
    "propagation.inject_response": "headers, *, public=None, method='', status=0",
    # shims
    "shim.Capabilities": (
        "versions, push=False, blocking_wait=False, tombstones=False, rest=(), tap=False, marks='none'"
    ),
    "shim.Shim.visible": "self, ids, server",
    "shim.Shim.watch": "self, server, on_change",
    "shim.Shim.wait": "self, ids, server, timeout",
    "shim.wrapper": "shim, *, client, wrapped",
    "shim.unproven": "reason, kind=<UnprovenKind.OTHER: 'other'>",
    # tests of services
    "memory.Store": "name, *, regions=('a', 'b'), lag=0.0, versions='position', monkey=False, seed=0",
    "memory.Store.freeze": "self, region",
    "memory.Store.heal": "self, region",
    "memory.Store.promote": "self, region, *, lose=0",
    "memory.Store.restart": "self, region",
    "testing.assert_barriers": "store, *, at_least=1",
    "testing.drawn": "data",
}

ENUMS = {
    "Order": "BEFORE AFTER EQUAL CONCURRENT",
    "Verdict": "VISIBLE TIMED_OUT UNPROVEN ELSEWHERE NOT_YET",
    "UnprovenKind": "HISTORY RIGHT CONNECTION NOT_OPENED MISSPELT DISCOVERY UNFIT OWN_FAULT OTHER",
    "Reach": "SESSION REPLICA REGION",
    "Trust": "PRIVATE ALL NONE KEY",
    "Mode": "ENFORCE DRY_RUN OFF",
}

ATTRIBUTES = {
    "WriteId": "store key version is_position",
    "Lineage": "incomplete",
    "Scope": "lineage",
    "BarrierResult": "satisfied complete waited stores gaps vacuous",
    "StoreResult": "verdict reason waited kind code",
    "Store": "kind replicas capabilities",
    "Reading": "lineage",
}

ERRORS: dict[str, tuple[str, ...]] = {
    "BarrierError": ("AntipodeError",),
    "BarrierTimeout": ("BarrierError", "TimeoutError"),
    "BarrierUnproven": ("BarrierError",),
    "BarrierIncomplete": ("BarrierError",),
    "Redeliver": ("BarrierError",),
    "ConfigurationError": ("AntipodeError", "ValueError"),
    "UnknownStoreError": ("ConfigurationError",),
    "UnfitStoreError": ("ConfigurationError",),
    "BlockingCallError": ("AntipodeError",),
    "PendingWriteError": ("AntipodeError",),
    "MalformedLineageError": ("AntipodeError", "ValueError"),
}


def named(path: str) -> Any:
    found: Any = antipode
    for name in path.split("."):
        found = getattr(found, name)
    return found


def shown(function: Any) -> str:
    """A signature without annotations."""
    signature = inspect.signature(function)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    text = str(inspect.Signature(bare))[1:-1]
    return text.replace(" = ", "=")


@pytest.mark.parametrize("path", SIGNATURES)
def test_a_documented_name_has_the_documented_signature(path: str) -> None:
    assert shown(named(path)) == SIGNATURES[path]
    assert inspect.getdoc(named(path))


def test_the_asyncio_forms_take_the_same() -> None:
    assert shown(antipode.barrier_async) == shown(antipode.barrier)
    assert shown(antipode.read_or_fallback_async) == shown(antipode.read_or_fallback)
    assert inspect.iscoroutinefunction(antipode.barrier_async)


@pytest.mark.parametrize("name", ENUMS)
def test_the_words_of_an_enum(name: str) -> None:
    kind = named(name)
    assert issubclass(kind, Enum)
    assert {member.name for member in kind} == set(ENUMS[name].split())


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_the_attributes_of_a_class(name: str) -> None:
    kind = named(name)
    here = {*dir(kind), *getattr(kind, "__dataclass_fields__", ())}
    assert set(ATTRIBUTES[name].split()) <= here


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_tree(name: str) -> None:
    bases = named(name).__bases__
    assert tuple(base.__name__ for base in bases) == ERRORS[name]
    assert issubclass(named(name), antipode.AntipodeError)


def test_a_lineage_is_a_value() -> None:
    one = antipode.Lineage([antipode.WriteId.position("s", "e", 1)])
    two = antipode.Lineage([antipode.WriteId.position("s", "e", 2)])
    assert (one | two, one <= two, two <= one) == (two, True, False)
    assert one.compare(two) is antipode.Order.BEFORE
    with pytest.raises(AttributeError):
        one.anything = 1  # type: ignore[attr-defined]


def test_every_name_that_is_exported_is_there_and_documented() -> None:
    for name in antipode.__all__:
        value = getattr(antipode, name)
        assert inspect.getdoc(value) if callable(value) else True, name
    for module in ("shim", "propagation", "memory", "_base.settings"):
        loaded = importlib.import_module(f"antipode.{module}")
        for name in loaded.__all__:
            assert hasattr(loaded, name), f"{module}.{name}"


def test_configure_takes_the_words_of_the_variables() -> None:
    """API section 3j: the same word, no prefix, no unit."""
    for word, setting in WORDS.items():
        if setting.variable:
            spelled = setting.variable.removeprefix("ANTIPODE_").lower()
            assert spelled in {word, f"{word}_ms", f"{word}_s"}
    assert {field.name for field in fields(antipode.Settings)} == set(WORDS)


def test_what_is_named_after_a_library_does_not_hide_it() -> None:
    """`antipode.requests` and its like import the library of the same name."""
    import grpc
    import httpx
    import requests

    for ours, theirs in ((antipode.grpc, grpc), (antipode.httpx, httpx), (antipode.requests, requests)):
        assert ours is not theirs


def test_importing_the_package_needs_no_optional_library() -> None:
    """grpcio, requests, httpx and stores' clients are needed by those who use them alone."""
    import subprocess
    import sys

    script = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in {'grpc', 'requests', 'httpx', 'redis', 'pika', 'pytest', 'starlette',\n"
        "                                      'celery', 'faststream'}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import antipode, antipode.memory, antipode.asgi, antipode.wsgi, antipode.propagation, antipode.cli\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
