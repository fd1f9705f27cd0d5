"""Judging what was recorded: `antipode check`."""
