"""Which operations of the S3 API write, and which read (spec SHIM-6)."""

from __future__ import annotations

from typing import Final

READS_OBJECT: Final = frozenset({"GetObject", "HeadObject"})
"""Reads of one object whose answer holds its metadata."""
READS_PART: Final = frozenset(
    {
        *("GetObjectAttributes", "GetObjectTagging", "GetObjectTorrent", "SelectObjectContent"),
        *("GetObjectAnnotation", "ListObjectAnnotations"),
        *("GetObjectAcl", "GetObjectLegalHold", "GetObjectRetention"),
    }
)
"""Reads of one object whose answer does not say which lineage rests beside it."""
READS_MANY: Final = frozenset({"ListObjects", "ListObjectsV2", "ListObjectVersions"})
READS: Final = READS_OBJECT | READS_PART | READS_MANY

UNVERSIONED: Final = frozenset(
    {
        *("PutObjectTagging", "DeleteObjectTagging", "RestoreObject", "RenameObject"),
        *("PutObjectAnnotation", "DeleteObjectAnnotation"),
    }
)
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
NEITHER: Final = frozenset(
    {
        *("CreateBucket", "CreateBucketMetadataConfiguration", "CreateBucketMetadataTableConfiguration"),
        *("CreateSession", "DeleteBucket", "DeleteBucketAnalyticsConfiguration", "DeleteBucketCors"),
        *("DeleteBucketEncryption", "DeleteBucketIntelligentTieringConfiguration"),
        *("DeleteBucketInventoryConfiguration", "DeleteBucketLifecycle", "DeleteBucketMetadataConfiguration"),
        *("DeleteBucketMetadataTableConfiguration", "DeleteBucketMetricsConfiguration"),
        *("DeleteBucketOwnershipControls", "DeleteBucketPolicy", "DeleteBucketReplication", "DeleteBucketTagging"),
        *("DeleteBucketWebsite", "DeletePublicAccessBlock", "GetBucketAbac", "GetBucketAccelerateConfiguration"),
        *("GetBucketAcl", "GetBucketAnalyticsConfiguration", "GetBucketCors", "GetBucketEncryption"),
        *("GetBucketIntelligentTieringConfiguration", "GetBucketInventoryConfiguration", "GetBucketLifecycle"),
        *("GetBucketLifecycleConfiguration", "GetBucketLocation", "GetBucketLogging"),
        *("GetBucketMetadataConfiguration", "GetBucketMetadataTableConfiguration"),
        *("GetBucketMetricsConfiguration", "GetBucketNotification", "GetBucketNotificationConfiguration"),
        *("GetBucketOwnershipControls", "GetBucketPolicy", "GetBucketPolicyStatus", "GetBucketReplication"),
        *("GetBucketRequestPayment", "GetBucketTagging", "GetBucketVersioning", "GetBucketWebsite"),
        "GetObjectLockConfiguration",
        *("GetPublicAccessBlock", "HeadBucket", "ListBucketAnalyticsConfigurations"),
        *("ListBucketIntelligentTieringConfigurations", "ListBucketInventoryConfigurations"),
        *("ListBucketMetricsConfigurations", "ListBuckets", "ListDirectoryBuckets", "ListMultipartUploads"),
        *("ListParts", "PutBucketAbac", "PutBucketAccelerateConfiguration", "PutBucketAcl"),
        *("PutBucketAnalyticsConfiguration", "PutBucketCors", "PutBucketEncryption"),
        *("PutBucketIntelligentTieringConfiguration", "PutBucketInventoryConfiguration", "PutBucketLifecycle"),
        *("PutBucketLifecycleConfiguration", "PutBucketLogging", "PutBucketMetricsConfiguration"),
        *("PutBucketNotification", "PutBucketNotificationConfiguration", "PutBucketOwnershipControls"),
        *("PutBucketPolicy", "PutBucketReplication", "PutBucketRequestPayment", "PutBucketTagging"),
        *("PutBucketVersioning", "PutBucketWebsite", "PutObjectAcl", "PutObjectLegalHold"),
        *("PutObjectLockConfiguration", "PutObjectRetention", "PutPublicAccessBlock"),
        *("UpdateBucketMetadataAnnotationTableConfiguration", "UpdateBucketMetadataInventoryTableConfiguration"),
        *("UpdateBucketMetadataJournalTableConfiguration", "UpdateObjectEncryption", "UploadPart"),
        *("UploadPartCopy", "WriteGetObjectResponse"),
    }
)
"""Administration, and parts of uploads. What is in no table (of a newer client) is unsure: it waits as a read does, and
is recorded as a write of which no version can be had (SHIM-43)."""
