"""The wrapped client: boto3's own class, whose writes join the scope and whose reads can wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antipode.shim import call_site, logs
from antipode.shim.aws import WrappedAwsClient, copy_of
from opentelemetry import context as otel

from antipode_s3 import copies, reads, writes
from antipode_s3.binding import Binding
from antipode_s3.operations import NEITHER, READS, WRITES


class RecordingS3(WrappedAwsClient):
    """Put before a boto3 client's own class."""

    _antipode: Mapping[str, Binding]
    """By bucket."""
    _antipode_context: otel.Context | None
    """A managed transfer works in threads of its own: what the caller's context was. None in the application's."""
    _antipode_refusals = (501,)

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

    @property
    def _antipode_managed(self) -> bool:
        """Whether this is the copy that a managed transfer works with."""
        return self._antipode_context is not None

    def _antipode_carried(self) -> Any:
        """A copy for one managed transfer, whose threads know the caller's scope."""
        return self if self._antipode_managed else copy_of(self, _antipode_context=otel.get_current())

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
