"""Dry-run: what a barrier would have found, as records."""
