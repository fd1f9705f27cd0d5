"""Micro benchmarks: what single operations cost, beside a naive JSON list of write identifiers."""
