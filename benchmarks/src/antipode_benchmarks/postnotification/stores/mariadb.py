"""Posts in MariaDB."""

from antipode_benchmarks.postnotification.stores._sql import LAB, open_posts, prepare, register

__all__ = ["LAB", "open_posts", "prepare", "register"]
