"""The application's four services; `post-storage` runs in both regions. And the worker of random workloads."""

from __future__ import annotations

from collections.abc import Callable

from antipode_benchmarks.postnotification.services import follower_notify, notifier, post_storage, post_upload
from antipode_benchmarks.postnotification.services.site import Site
from antipode_benchmarks.postnotification.traffic import App


def _worker(site: Site) -> App:
    from antipode_benchmarks.postnotification.services import worker  # shims, which no baseline imports

    return worker.build(site)


BUILD: dict[str, Callable[[Site], App]] = {
    "post-upload": post_upload.build,
    "post-storage-a": post_storage.build,
    "notifier": notifier.build,
    "follower-notify": follower_notify.build,
    "post-storage-b": post_storage.build,
    "worker": _worker,
}

__all__ = ["BUILD", "Site"]
