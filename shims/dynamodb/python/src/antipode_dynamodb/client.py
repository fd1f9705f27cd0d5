"""The wrapped client: each call goes by what it does to data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from antipode.shim.aws import WrappedAwsClient

from antipode_dynamodb import partiql
from antipode_dynamodb.batches import write_batch, write_transaction
from antipode_dynamodb.binding import Binding
from antipode_dynamodb.hiding import READS, read_items, unsure, write_and_give
from antipode_dynamodb.writing import KINDS, write_item

Handler = Callable[[Binding, str, dict[str, Any]], Any]


class RecordingDynamoDB(WrappedAwsClient):
    """What makes a boto3 client record its writes. Never made by itself: mixed into the client's own class."""

    _antipode: Binding

    def _make_api_call(self, operation_name: str, api_params: dict[str, Any]) -> Any:
        """Where every call of a botocore client comes through."""
        binding = self._antipode
        binding.refresh()
        handler = HANDLERS.get(operation_name, unsure)
        if operation_name in NEITHER or not binding.records or not _is_ours(binding, operation_name, api_params):
            return self._antipode_plain._make_api_call(operation_name, api_params)
        if binding.conversion is None:
            return handler(binding, operation_name, dict(api_params))
        low = binding.conversion.to_low(operation_name, api_params)
        return binding.conversion.to_high(operation_name, handler(binding, operation_name, low))


def _is_ours(binding: Binding, operation: str, params: dict[str, Any]) -> bool:
    """Whether a call touches a table of the store, as far as its parameters tell."""
    if binding.only is None or "TableName" not in params:
        return True
    return binding.has(str(params["TableName"]))


HANDLERS: Final[dict[str, Handler]] = {
    **dict.fromkeys(KINDS, functools.partial(write_and_give, write_item)),
    **dict.fromkeys(READS, read_items),
    "BatchWriteItem": write_batch,
    "TransactWriteItems": functools.partial(write_and_give, write_transaction),
    "ExecuteStatement": partiql.execute,
    "BatchExecuteStatement": partiql.execute,
    "ExecuteTransaction": partiql.execute,
}
NEITHER: Final = frozenset(
    {
        *("CancelBulkOperation", "CreateBackup", "CreateGlobalTable", "CreateTable", "DeleteBackup"),
        *("DeleteResourcePolicy", "DeleteTable", "DescribeBackup", "DescribeBulkOperation"),
        *("DescribeContinuousBackups", "DescribeContributorInsights", "DescribeEndpoints", "DescribeExport"),
        *("DescribeGlobalTable", "DescribeGlobalTableSettings", "DescribeImport"),
        *("DescribeKinesisStreamingDestination", "DescribeLimits", "DescribeTable"),
        *("DescribeTableReplicaAutoScaling", "DescribeTimeToLive", "DisableKinesisStreamingDestination"),
        *("EnableKinesisStreamingDestination", "ExportTableToPointInTime", "GetResourcePolicy", "ImportTable"),
        *("ListBackups", "ListBulkOperations", "ListContributorInsights", "ListExports", "ListGlobalTables"),
        *("ListImports", "ListTables", "ListTagsOfResource", "PutResourcePolicy", "RestoreTableFromBackup"),
        *("RestoreTableToPointInTime", "TagResource", "UntagResource", "UpdateContinuousBackups"),
        *("UpdateContributorInsights", "UpdateGlobalTable", "UpdateGlobalTableSettings"),
        *("UpdateKinesisStreamingDestination", "UpdateTable", "UpdateTableReplicaAutoScaling", "UpdateTimeToLive"),
    }
)
"""Administration. What is in no table (vectors, bulk loads, what a newer client brings) is unsure."""
