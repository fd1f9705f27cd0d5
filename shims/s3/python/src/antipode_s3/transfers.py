"""Transfer managers that an application makes of a wrapped client (spec SHIM-50).

They work in threads of their own, which know no scope. A manager asks nothing of the client that it is given, so its
constructor has to look; of a plain client it stays as it is.
"""

from __future__ import annotations

import functools
from typing import Any

from boto3.s3.transfer import TransferManager

from antipode_s3.client import RecordingS3
from antipode_s3.copies import mark_copy


class RecordingManager:
    """Beside `TransferManager`: each transfer works with a copy of the client that knows its caller's scope."""

    _antipode_client: RecordingS3

    @property
    def _client(self) -> Any:
        return self._antipode_client._antipode_carried()

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        with mark_copy():
            return super().copy(*args, **kwargs)  # type: ignore[misc]


@functools.cache
def _recording_class(plain: Any) -> type[Any]:
    return type(plain.__name__, (RecordingManager, plain), {"__module__": plain.__module__})


@functools.cache
def look_at_constructors() -> None:
    """Have the constructor of transfer managers look at the client; once a process."""
    manager: Any = TransferManager
    own = manager.__init__

    @functools.wraps(own)
    def construct(self: Any, client: Any, *args: Any, **kwargs: Any) -> None:
        own(self, client, *args, **kwargs)
        if isinstance(self, RecordingManager):  # two threads may have come here first, and each wrapped it
            return
        if isinstance(client, RecordingS3) and not client._antipode_managed:
            self._antipode_client = self.__dict__.pop("_client")
            kind: Any = type(self)
            self.__class__ = _recording_class(kind)

    manager.__init__ = construct
