"""Which operations of the S3 API write, and which read (spec SHIM-6)."""

from __future__ import annotations

from typing import Final

READS_OBJECT: Final = frozenset({"GetObject", "HeadObject"})
"""Reads of one object whose answer holds its metadata."""
READS_PART: Final = frozenset({"GetObjectAttributes", "GetObjectTagging", "GetObjectTorrent", "SelectObjectContent"})
"""Reads of one object whose answer does not say which lineage rests beside it."""
READS_MANY: Final = frozenset({"ListObjects", "ListObjectsV2", "ListObjectVersions"})
READS: Final = READS_OBJECT | READS_PART | READS_MANY

UNVERSIONED: Final = frozenset({"PutObjectTagging", "DeleteObjectTagging", "RestoreObject", "RenameObject"})
"""They change what readers see of an object, and no version says so."""
WRITES: Final = UNVERSIONED | {
    "PutObject",
    "CopyObject",
    "DeleteObject",
    "DeleteObjects",
    "CreateMultipartUpload",
    "CompleteMultipartUpload",
    "AbortMultipartUpload",
}
"""Operations that may change what readers of a bucket see. `UploadPart` changes nothing until the upload is complete.

Rights, retention, legal holds, and the configuration of buckets are administration, and get no version.
"""
