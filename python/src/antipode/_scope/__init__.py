"""The lineage of a request: its pending writes, open streams and reads, and its way over threads."""
