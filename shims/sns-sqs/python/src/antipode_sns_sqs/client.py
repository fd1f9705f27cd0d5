"""The wrapped client: boto3's own class, whose messages carry the lineage."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from antipode.shim import refuse_making

from antipode_sns_sqs import consuming, publishing
from antipode_sns_sqs.options import Binding

if TYPE_CHECKING:
    _Base = Any
else:
    _Base = object

_MOST_CLASSES: Final = 256


class _Left(threading.local):
    flag = False


_left = _Left()


class CarryingClient(_Base):  # type: ignore[misc]
    """Put before a boto3 client's own class."""

    _antipode: Binding
    _antipode_plain: Any
    __init__ = refuse_making

    def _make_api_call(self, operation_name: str, api_params: dict[str, Any]) -> Any:
        form = publishing.FORMS.get(operation_name)
        if form is not None:
            return form.send(self, self._antipode, operation_name, api_params)
        if operation_name == "ReceiveMessage":
            return consuming.receive(self, self._antipode, api_params)
        if operation_name in ("DeleteMessage", "DeleteMessageBatch"):
            consuming.deleting(api_params)
        return super()._make_api_call(operation_name, api_params)

    def _antipode_send(self, operation: str, params: dict[str, Any]) -> Any:
        """The client's own call; `has_left` says afterwards whether anything may have left."""
        _left.flag = False
        return super()._make_api_call(operation, params)

    def _make_request(self, *args: Any, **kwargs: Any) -> Any:
        _left.flag = True
        return super()._make_request(*args, **kwargs)

    @staticmethod
    def _antipode_has_left() -> bool:
        """Whether this thread's last call got as far as its connection: what it asked for may have been done."""
        return _left.flag


_classes: dict[type[Any], type[Any]] = {}


def _carrying_class(base: type[Any]) -> type[Any]:
    """The class of a wrapped client: the client's own, with ours before it."""
    made = _classes.get(base)
    if made is None:
        if len(_classes) >= _MOST_CLASSES:  # boto3 makes a class for each client
            _classes.clear()
        space = {"__module__": base.__module__, "__doc__": base.__doc__}
        made = _classes[base] = type(base.__name__, (CarryingClient, base), space)
    return made


def carrying(plain: Any, binding: Binding) -> Any:
    """A copy of a client that shares its connections, credentials and events."""
    made = object.__new__(_carrying_class(type(plain)))
    made.__dict__.update(plain.__dict__)
    made._antipode = binding
    made._antipode_plain = plain
    return made
