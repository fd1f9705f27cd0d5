"""gRPC interceptors for calls of all four kinds: metadata in, trailing metadata out (spec PROP).

server = grpc.server(pool, interceptors=[antipode.grpc.server_interceptor()])
channel = grpc.intercept_channel(channel, antipode.grpc.client_interceptor("post-storage:9090"))
channel = grpc.aio.insecure_channel(target, interceptors=antipode.grpc.aio_client_interceptors(target))

A stream has one scope; `with antipode.message_scope(text):` gives one of its messages its own (SCOPE-8). The caller of
a stream has messages in hand before the trailer brings their lineage, and its scope is incomplete until then (PROP-28).
"""

from __future__ import annotations

import grpc
import grpc.aio

from antipode._base.call_site import skip_packages
from antipode.grpc import aio_clients
from antipode.grpc.aio_servers import AioServerInterceptor
from antipode.grpc.clients import ClientInterceptor
from antipode.grpc.servers import ServerInterceptor
from antipode.grpc.targets import host_of

__all__ = [
    "aio_client_interceptors",
    "aio_server_interceptor",
    "client_interceptor",
    "host_of",
    "server_interceptor",
]

skip_packages("grpc", "opentelemetry")


def server_interceptor(*, edge: bool | None = None) -> grpc.ServerInterceptor:
    """A scope for each call of a `grpc.server`; its additions go back in trailing metadata, errors too.

    The call's own deadline tightens the barriers in it. `edge=True`: callers are outside.
    """
    return ServerInterceptor(edge)


def aio_server_interceptor(*, edge: bool | None = None) -> grpc.aio.ServerInterceptor:
    """The same for a `grpc.aio.server`."""
    return AioServerInterceptor(edge)


def client_interceptor(target: str) -> grpc.UnaryUnaryClientInterceptor:
    """Carries lineages with the calls of a channel to `target`, by the word that opened the channel."""
    return ClientInterceptor(target)


def aio_client_interceptors(target: str) -> list[grpc.aio.ClientInterceptor]:
    """The same for a `grpc.aio` channel, which wants one for each kind of calls."""
    return [
        aio_clients.UnaryUnary(target),
        aio_clients.UnaryStream(target),
        aio_clients.StreamUnary(target),
        aio_clients.StreamStream(target),
    ]
