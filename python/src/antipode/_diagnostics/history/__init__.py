"""Histories: each operation as a line, for `antipode check --history`."""
