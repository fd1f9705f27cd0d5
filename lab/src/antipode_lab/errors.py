"""What can go wrong in the lab, each with a message that says what to do."""

from __future__ import annotations


class LabError(Exception):
    """The lab could not do what was asked; the message says why and what helps."""


class InstallError(LabError):
    """A server, or Toxiproxy, is not on this machine and could not be installed."""


class NotSupportedError(LabError):
    """This store has no such verb (a queue has nothing to promote)."""
