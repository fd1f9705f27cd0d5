"""Antipode's S3 shim: a boto3 client whose writes join the request's lineage, and barriers for its replica buckets.

images = antipode_s3.wrap(boto3.client("s3"), store="images", bucket="images-us")    # still a boto3 client
images.put_object(Bucket="images-us", Key="42.jpg", Body=body)                        # recorded in the scope

antipode_s3.register("images", replicas=["s3://images-eu?region=eu-west-1"])          # where readers are
antipode.barrier(timeout=5.0)                                                         # waits until it is there
"""

from antipode.shim import skip_packages

from antipode_s3.shim import S3Shim
from antipode_s3.wrapping import register, wrap

skip_packages("antipode_s3", "boto3", "botocore", "s3transfer")

__version__ = "0.1.0"

__all__ = ["S3Shim", "register", "wrap"]
