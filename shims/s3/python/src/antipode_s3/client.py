"""The wrapped client: boto3's own class, whose writes join the scope and whose reads can wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from antipode import logs
from antipode.shim import refuse_making
from antipode.site import call_site
from opentelemetry import context as otel

from antipode_s3 import client_calls, copies, reads, writes
from antipode_s3.binding import Binding
from antipode_s3.operations import NEITHER, READS, WRITES

if TYPE_CHECKING:
    _Base = Any
else:
    _Base = object


_MOST_CLASSES: Final = 256


class RecordingS3(_Base):  # type: ignore[misc]
    """Put before a boto3 client's own class."""

    _antipode: Mapping[str, Binding]
    """By bucket."""
    _antipode_plain: Any
    _antipode_context: otel.Context | None
    """A managed transfer works in threads of its own: what the caller's context was. None in the application's."""
    __init__ = refuse_making

    def _make_api_call(self, operation_name: str, api_params: dict[str, Any]) -> Any:
        context = self._antipode_context
        if context is None:
            return self._antipode_call(operation_name, api_params)
        token = otel.attach(context)
        try:
            return self._antipode_call(operation_name, api_params)
        finally:
            otel.detach(token)

    def _antipode_call(self, operation: str, params: dict[str, Any]) -> Any:
        writing = operation not in READS
        if operation in ("CopyObject", "UploadPartCopy"):  # wherever to: the source is read
            copies.wait_for_source(self, params)
        if operation in NEITHER:
            return super()._make_api_call(operation, params)
        binding = self._antipode.get(params.get("Bucket", ""))
        if binding is None:
            if writing and params.get("Bucket"):
                logs.info(
                    f"bucket {params['Bucket']}",
                    f"a wrapped client writes to bucket {params['Bucket']}, which no store has: not recorded. Wrap the "
                    "client for it, too: wrap(client, store=…, bucket=…)",
                    code="AP415",
                )
            return super()._make_api_call(operation, params)
        binding.refresh()
        if not binding.records:
            return self._antipode_send(operation, params)
        if writing:
            return writes.do(self, binding, operation, params)
        return reads.do(self, binding, operation, params)

    def _antipode_send(self, operation: str, params: dict[str, Any]) -> Any:
        """The client's own call; `client_calls.sent` says afterwards whether anything may have left."""
        client_calls.begin()
        return super()._make_api_call(operation, params)

    def _make_request(self, *args: Any, **kwargs: Any) -> Any:
        client_calls.leaves()
        return super()._make_request(*args, **kwargs)

    @property
    def _antipode_managed(self) -> bool:
        """Whether this is the copy that a managed transfer works with."""
        return self._antipode_context is not None

    def _antipode_carried(self) -> Any:
        """A copy for one managed transfer, whose threads know the caller's scope."""
        return self if self._antipode_managed else shallow(self, _antipode_context=otel.get_current())

    def upload_file(self, *args: Any, **kwargs: Any) -> Any:
        return super(RecordingS3, self._antipode_carried()).upload_file(*args, **kwargs)

    def upload_fileobj(self, *args: Any, **kwargs: Any) -> Any:
        return super(RecordingS3, self._antipode_carried()).upload_fileobj(*args, **kwargs)

    def download_file(self, *args: Any, **kwargs: Any) -> Any:
        return super(RecordingS3, self._antipode_carried()).download_file(*args, **kwargs)

    def download_fileobj(self, *args: Any, **kwargs: Any) -> Any:
        return super(RecordingS3, self._antipode_carried()).download_fileobj(*args, **kwargs)

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        with copies.mark_copy():
            return super(RecordingS3, self._antipode_carried()).copy(*args, **kwargs)

    def generate_presigned_url(self, ClientMethod: str, *args: Any, **kwargs: Any) -> Any:
        operation = self.meta.method_to_api_mapping.get(ClientMethod, "")
        if operation in WRITES:
            _outside(ClientMethod)
        return super().generate_presigned_url(ClientMethod, *args, **kwargs)

    def generate_presigned_post(self, *args: Any, **kwargs: Any) -> Any:
        _outside("a presigned POST")
        return super().generate_presigned_post(*args, **kwargs)


def _outside(what: str) -> None:
    site = call_site()
    logs.info(
        f"presigned {site}",
        f"{what} with a presigned URL is not recorded: whoever uses the URL writes without Antipode. site={site}",
        code="AP415",
    )


_classes: dict[type[Any], type[Any]] = {}


def recording_class(base: type[Any]) -> type[Any]:
    """The class of a wrapped client: the client's own, with ours before it."""
    made = _classes.get(base)
    if made is None:
        if len(_classes) >= _MOST_CLASSES:  # boto3 makes a class for each client
            _classes.clear()
        space = {"__module__": base.__module__, "__doc__": base.__doc__}
        made = _classes[base] = type(base.__name__, (RecordingS3, base), space)
    return made


def shallow(client: Any, **changes: Any) -> Any:
    """A copy that shares connections, credentials and events. (`copy.copy` cannot: a client answers for any name.)"""
    cls = type(client)
    if not issubclass(cls, RecordingS3):
        cls = recording_class(cls)
    made = object.__new__(cls)
    made.__dict__.update(client.__dict__)
    made.__dict__.update(changes)
    return made
