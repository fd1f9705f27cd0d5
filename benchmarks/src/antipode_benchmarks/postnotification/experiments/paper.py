"""What the paper reports (SOSP'23, section 7), to be shown beside what is measured here."""

from __future__ import annotations

from typing import Final

TABLE_1: Final = {
    ("mysql", "sns"): 95,
    ("dynamodb", "sns"): 95,
    ("redis", "sns"): 88,
    ("s3", "sns"): 100,
    ("mysql", "activemq"): 8,
    ("dynamodb", "activemq"): 7,
    ("redis", "activemq"): 13,
    ("s3", "activemq"): 100,
    ("mysql", "dynamodb"): 0,
    ("dynamodb", "dynamodb"): 0,
    ("redis", "dynamodb"): 0,
    ("s3", "dynamodb"): 13,
}
"""Violations without Antipode in percent, by store and notifier; AMQ is ActiveMQ. With Antipode there were none."""

TABLE_3: Final = {
    "dynamodb": 42,
    "mysql": 14_000,
    "redis": 105,
    "s3": 320,
    "mongodb": 46,
    "sns": 32,
    "rabbitmq": 87,
}
"""By how many octets an object or a message grew, on average; MySQL's is its index."""
