"""What is known of the server behind one connection."""

from __future__ import annotations


class Known:
    """What one connection has found out about its server; shared by all wraps of the connection."""

    __slots__ = (
        "asks_how",
        "epoch",
        "has_question",
        "prepared",
        "questions",
        "segment",
        "spelled",
        "system",
        "timeline",
    )

    def __init__(self) -> None:
        self.system = 0
        self.segment = 0
        self.timeline = 0
        self.epoch = ""
        """Of `timeline`; empty until it was asked for."""
        self.spelled = b""
        """`timeline` as the names of the log's files begin with it; empty likewise."""
        self.questions = 0
        """How often the position was asked for by the extended protocol; as psycopg counts its statements."""
        self.prepared = False
        """Whether the server has as prepared statements what rides behind a write."""
        self.asks_how = 0
        """How many of the next writes by themselves ask how they are committed, too."""
        self.has_question = False
        """Whether it has the question for the position, which rides with a COMMIT, too."""

    def forget_prepared(self) -> None:
        """The server has none of our prepared statements any more."""
        self.prepared = self.has_question = False
        self.questions = 0
