"""Antipode for DynamoDB: boto3 clients, resources and tables that record their writes, and barriers for its regions."""

from antipode.shim import skip_packages

from antipode_dynamodb.shim import DynamoDbShim
from antipode_dynamodb.wrapping import register, wrap

__all__ = ["DynamoDbShim", "register", "wrap"]

skip_packages("antipode_dynamodb", "boto3", "botocore")
