"""Antipode for MongoDB: PyMongo clients, sync and async, that record their writes, and barriers for their servers."""

from antipode.shim import skip_packages

from antipode_mongodb.shim import MongoShim
from antipode_mongodb.wrapping import register, wrap

__all__ = ["MongoShim", "register", "wrap"]

skip_packages("antipode_mongodb", "pymongo")
