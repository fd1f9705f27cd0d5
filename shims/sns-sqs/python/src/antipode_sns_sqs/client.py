"""The wrapped client: boto3's own class, whose messages carry the lineage."""

from __future__ import annotations

from typing import Any

from antipode.shim.aws import WrappedAwsClient

from antipode_sns_sqs import consuming, publishing
from antipode_sns_sqs.options import Binding


class CarryingClient(WrappedAwsClient):
    """Put before a boto3 client's own class."""

    _antipode: Binding

    def _make_api_call(self, operation_name: str, api_params: dict[str, Any]) -> Any:
        form = publishing.FORMS.get(operation_name)
        if form is not None:
            return form.send(self, self._antipode, operation_name, api_params)
        if operation_name == "ReceiveMessage":
            return consuming.receive(self, self._antipode, api_params)
        if operation_name in ("DeleteMessage", "DeleteMessageBatch"):
            consuming.deleting(api_params)
        return super()._make_api_call(operation_name, api_params)
