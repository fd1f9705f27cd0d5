"""What the numbers of one phase come to: the fields of the result (benchmarks/postnotification.md)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from antipode_benchmarks.postnotification.load import Batch
from antipode_benchmarks.postnotification.options import BarrierPlace, Options


def spread(values_ns: Sequence[int]) -> dict[str, float]:
    """A distribution in milliseconds; percentiles are values that occurred (nearest rank)."""
    if not values_ns:
        raise ValueError("no values")
    ordered = sorted(values_ns)

    def rank(share: float) -> float:
        return _ms(ordered[max(math.ceil(share * len(ordered)) - 1, 0)])

    return {
        "p50": rank(0.50),
        "p90": rank(0.90),
        "p99": rank(0.99),
        "mean": _ms(sum(ordered) / len(ordered)),
        "min": _ms(ordered[0]),
        "max": _ms(ordered[-1]),
    }


def _ms(nanoseconds: float) -> float:
    return round(nanoseconds / 1e6, 3)


def summary(
    options: Options, batch: Batch, warmup: Batch, traffic: dict[str, dict[str, int]], *, barrier: BarrierPlace
) -> dict[str, Any]:
    """One phase's part of the result; `barrier` is where it waited (`none`: the baseline)."""
    pairs = [(upload, batch.deliveries[upload.post]) for upload in batch.uploads]
    violations = batch.violations
    # The window ends when the post may be read: barrier returned, or the waiting read itself.
    reading = barrier == "wait-on-read"
    windows = [
        (delivery.read_at_ns if reading else delivery.ready_ns) - upload.acknowledged_ns for upload, delivery in pairs
    ]
    lags = [options.replicas[delivery.replica] if reading else options.slowest_lag_ms for _, delivery in pairs]
    duration = (max(upload.answered_ns for upload in batch.uploads) - batch.started_ns) / 1e9
    # Nothing is visible at a replica sooner after it was sent than its link's lag: a pass that is sooner is a false
    # one, also where the read after it came late enough to find the post.
    early = [
        upload.write_ns + window < lag * 1_000_000
        for (upload, _), window, lag in zip(pairs, windows, lags, strict=True)
    ]
    return {
        "requests": len(pairs),
        "violations": len(violations),
        "violations_percent": round(100 * len(violations) / len(pairs), 2),
        "not_found": sum(batch.deliveries[upload.post].digest is None for upload in violations),
        "violations_by_replica": dict(
            sorted(Counter(batch.deliveries[upload.post].replica for upload in violations).items())
        ),
        "reads_by_replica": dict(sorted(Counter(delivery.replica for _, delivery in pairs).items())),
        "warmup": {"requests": len(warmup.uploads), "violations": len(warmup.violations)},
        "incomplete_barriers": sum(not delivery.complete for _, delivery in pairs),
        "early_passes": None if barrier in ("nowhere", "none") else sum(early),
        "duplicates": batch.duplicates,
        "consistency_window_ms": spread(windows),
        "window_over_lag_ms": None
        if barrier == "none"
        else spread([window - lag * 1_000_000 for window, lag in zip(windows, lags, strict=True)]),
        "notification_ms": spread([delivery.received_ns - upload.acknowledged_ns for upload, delivery in pairs]),
        "barrier_ms": spread([delivery.ready_ns - delivery.received_ns for _, delivery in pairs])
        if barrier == "follower"
        else None,
        "read_ms": spread([delivery.done_ns - delivery.ready_ns for _, delivery in pairs]),
        "writer_latency_ms": spread([upload.latency_ns for upload in batch.uploads]),
        "store_write_ms": spread([upload.write_ns for upload in batch.uploads]),
        "duration_s": round(duration, 3),
        "throughput_per_s": round(len(pairs) / duration, 2),
        "bytes": _bytes(batch, traffic),
    }


def _bytes(batch: Batch, traffic: dict[str, dict[str, int]]) -> dict[str, float]:
    """Means, in octets; of HTTP over all services, warm-up included."""
    count = len(batch.deliveries)
    requests = sum(service["requests"] for service in traffic.values())

    def total(what: str) -> int:
        return sum(service[what] for service in traffic.values())

    return {
        "message_headers": round(sum(one.message_bytes for one in batch.deliveries.values()) / count, 1),
        "message_lineage": round(sum(one.message_lineage_bytes for one in batch.deliveries.values()) / count, 1),
        "request_headers": round(total("request_headers") / requests, 1),
        "request_lineage": round(total("request_lineage") / requests, 1),
        "response_headers": round(total("response_headers") / requests, 1),
        "response_lineage": round(total("response_lineage") / requests, 1),
        "lineage_of_all_messages": total("request_lineage")
        + total("response_lineage")
        + sum(one.message_lineage_bytes for one in batch.deliveries.values()),
    }
