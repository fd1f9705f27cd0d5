"""Every public way of PyMongo's and GridFS's classes is known (SHIM-43, SHIM-44, SHIM-51)."""

from __future__ import annotations

import gridfs
import pymongo
import pytest
from antipode.testing.inventory import check_inventory, check_makes_none, public_ways
from antipode_mongodb.recording import recording_client, recording_collection, recording_database
from gridfs.asynchronous import AsyncGridFS, AsyncGridFSBucket
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.command_cursor import AsyncCommandCursor
from pymongo.asynchronous.cursor import AsyncCursor
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.synchronous.client_session import ClientSession
from pymongo.synchronous.collection import Collection
from pymongo.synchronous.command_cursor import CommandCursor
from pymongo.synchronous.cursor import Cursor
from pymongo.synchronous.database import Database

WRITES = {
    *("insert_one", "insert_many", "update_one", "update_many", "replace_one", "delete_one", "delete_many"),
    *("bulk_write", "drop", "rename", "drop_collection", "drop_database"),
}
BOTH = {
    *("find_one_and_delete", "find_one_and_replace", "find_one_and_update"),
    *("command", "cursor_command", "aggregate", "aggregate_raw_batches"),
}
"""They write, or may, and give data, or copy them: they wait as reads do (test_given_back.py)."""
READS = {
    *("find", "find_raw_batches", "count_documents", "estimated_document_count", "distinct"),
    *("list_indexes", "list_search_indexes", "index_information", "options", "watch"),
    *("list_collections", "list_collection_names", "validate_collection", "list_databases", "list_database_names"),
}
THROUGH_OTHERS = {
    *("find_one", "dereference"),  # `find`
    *("next", "to_list", "try_next"),  # cursors: what is sent for more waits, or is refused
    *("with_transaction", "commit_transaction", "abort_transaction", "start_transaction"),  # test_commits.py
}
MADE = {
    *("with_options", "get_collection", "get_database", "get_default_database", "create_collection", "database"),
    *("client", "collection", "start_session", "session", "clone", "bind"),
}
"""What they hand on records as they do."""
NEITHER = {
    *("create_index", "create_indexes", "create_search_index", "create_search_indexes", "update_search_index"),
    *("drop_index", "drop_indexes", "drop_search_index", "append_metadata", "server_info", "aconnect", "aclose"),
    *("HOST", "PORT", "address", "arbiters", "close", "codec_options", "eq_props", "is_mongos", "is_primary", "nodes"),
    *("primary", "secondaries", "read_concern", "read_preference", "write_concern", "topology_description", "name"),
    *("full_name", "add_option", "alive", "allow_disk_use", "batch_size", "collation", "comment", "cursor_id"),
    *("explain", "hint", "limit", "max", "max_await_time_ms", "max_scan", "max_time_ms", "min", "remove_option"),
    *("retrieved", "rewind", "skip", "sort", "where", "advance_cluster_time", "advance_operation_time"),
    *("cluster_time", "end_session", "has_ended", "in_transaction", "operation_time", "session_id"),
}
"""Administration, settings of a question that is yet to be sent, and what the client itself knows."""
RECORDING = [
    (pymongo.MongoClient, recording_client),
    (pymongo.AsyncMongoClient, recording_client),
    (Database, recording_database),
    (AsyncDatabase, recording_database),
    (Collection, recording_collection),
    (AsyncCollection, recording_collection),
]
CLASSES = [
    *(kind for kind, _ in RECORDING),
    *(Cursor, AsyncCursor, CommandCursor, AsyncCommandCursor, ClientSession, AsyncClientSession),
]
FILES = {
    "they go by the database's collections": {
        *("delete", "delete_by_name", "download_to_stream", "download_to_stream_by_name", "exists", "find"),
        *("find_one", "get", "get_last_version", "get_version", "list", "new_file", "open_download_stream"),
        *("open_download_stream_by_name", "open_upload_stream", "open_upload_stream_with_id", "put", "rename"),
        *("rename_by_name", "upload_from_stream", "upload_from_stream_with_id"),
    }
}


def test_every_public_way_is_known() -> None:
    """SHIM-51: a new release of PyMongo that brings one fails here."""
    tables = {
        "writes": WRITES,
        "reads": READS,
        "both": BOTH,
        "others": THROUGH_OTHERS,
        "made": MADE,
        "neither": NEITHER,
    }
    check_inventory(public_ways(CLASSES), tables)


def test_every_public_way_of_gridfs_is_known() -> None:
    """SHIM-51"""
    check_inventory(public_ways([gridfs.GridFS, gridfs.GridFSBucket, AsyncGridFS, AsyncGridFSBucket]), FILES)


@pytest.mark.parametrize(("plain", "made"), RECORDING, ids=lambda each: getattr(each, "__name__", ""))
def test_what_writes_or_reads_is_ours(plain: type, made: object) -> None:
    """SHIM-51: each such way of a wrapped part is another one than the plain part's."""
    assert callable(made)
    kind = made(plain)
    for name in sorted((WRITES | READS | BOTH) & public_ways([plain])):
        if isinstance(getattr(plain, name), property):
            continue  # `options` of a client
        assert getattr(kind, name) is not getattr(plain, name), name


def test_the_class_of_a_wrapped_client_makes_no_other() -> None:
    """SHIM-50"""
    check_makes_none(recording_client(pymongo.MongoClient), recording_client(pymongo.AsyncMongoClient))
