"""The plain clients under a wrapped one: without boto3's conversion of types, and of our own for questions."""

from __future__ import annotations

import copy
from typing import Any, Final

from antipode.shim.aws import copy_of
from boto3.dynamodb.transform import TransformationInjector, copy_dynamodb_params
from botocore.endpoint import Endpoint
from botocore.httpsession import URLLib3Session

_CONVERSIONS: Final = (
    ("provide-client-params.dynamodb", "dynamodb-create-params-copy"),
    ("before-parameter-build.dynamodb", "dynamodb-condition-expression"),
    ("before-parameter-build.dynamodb", "dynamodb-attr-value-input"),
    ("after-call.dynamodb", "dynamodb-attr-value-output"),
)


def low_level(client: Any) -> Any:
    """A copy of a client that shares its connections and takes and gives DynamoDB's own types.

    The client of a boto3 resource converts them by handlers, which the copy is without.
    """
    low = copy_of(client)
    low.meta = copy.copy(client.meta)
    low.meta.events = copy.copy(client.meta.events)
    for event, name in _CONVERSIONS:
        low.meta.events.unregister(event, unique_id=name)
    return low


class Conversion:
    """What a boto3 resource does with the types of its client's parameters and results."""

    def __init__(self, client: Any) -> None:
        self._injector = TransformationInjector()
        self._model = client.meta.service_model

    def to_low(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of a resource's call in DynamoDB's own types."""
        model = self._model.operation_model(operation)
        converted: dict[str, Any] = copy_dynamodb_params(params)
        injector = TransformationInjector()  # it keeps a count, and calls come from several threads
        injector.inject_condition_expressions(converted, model)
        injector.inject_attribute_value_input(converted, model)
        return converted

    def to_high(self, operation: str, result: dict[str, Any]) -> dict[str, Any]:
        """A result in Python's types, in place."""
        self._injector.inject_attribute_value_output(result, self._model.operation_model(operation))
        return result


class _OneShotEndpoint(Endpoint):  # type: ignore[misc]  # botocore has no types
    """An endpoint that sends each request once."""

    def _needs_retry(self, *_: Any, **__: Any) -> bool:
        return False


def for_questions(client: Any, timeout: float) -> Any:
    """A client of our own at the same endpoint, with the same credentials: short time-outs, no retries.

    The engine's thread must not be held by the application's retries, nor take its connections. It is made of the
    client's own parts: boto3's sessions are slow to load, and make clients for one thread at a time.
    """
    own = low_level(client)
    before = client._endpoint
    http = before.http_session
    own._endpoint = _OneShotEndpoint(
        before.host,
        endpoint_prefix=client.meta.service_model.endpoint_prefix,
        event_emitter=own.meta.events,
        response_parser_factory=before._response_parser_factory,
        http_session=URLLib3Session(
            verify=getattr(http, "_verify", True),
            proxies=getattr(getattr(http, "_proxy_config", None), "_proxies", None),
            timeout=timeout,
            max_pool_connections=2,
        ),
    )
    return own
