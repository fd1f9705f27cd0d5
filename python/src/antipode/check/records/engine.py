"""Records in DuckDB, embedded in this process, as a table of Ibis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import ibis
import pyarrow as pa
from ibis.expr.types import Table

from antipode.check.records.line import Line
from antipode.check.records.rows import CONTEXT_SCHEMA, FACT_SCHEMA, Context, Rows

_BATCH: Final = 100_000
"""Facts gathered before they are handed over."""
_NEXT: Final = "next_batch"


class Engine:
    """An empty database in memory; `threads` of them work on a question."""

    def __init__(self, threads: int = 2) -> None:
        # Nothing is fetched: what DuckDB has not got inside, it does not look for elsewhere.
        self._connection: Any = ibis.duckdb.connect(
            threads=threads, autoinstall_known_extensions=False, autoload_known_extensions=False
        )
        for name, schema in (("facts", FACT_SCHEMA), ("contexts", CONTEXT_SCHEMA)):
            self._connection.create_table(name, schema=ibis.Schema.from_pyarrow(schema))

    def load(self, lines: Iterable[Line]) -> Table:
        """Takes records in; the table that the analysis reads."""
        rows = Rows()
        for line in lines:
            rows.add(line)
            if len(rows) >= _BATCH:
                self._insert("facts", rows.take_facts())
        self._insert("facts", rows.take_facts(sums=True))
        self._insert("contexts", rows.contexts())
        facts, contexts = self._connection.table("facts"), self._connection.table("contexts")
        joined: Table = facts.join(contexts, "context").select(*Context._fields, *FACT_SCHEMA.names[1:])
        return joined

    def _insert(self, name: str, batch: pa.Table) -> None:
        # By DuckDB itself: Ibis would import pandas to see whether it is one of its frames.
        connection = self._connection.con
        connection.register(_NEXT, batch)
        connection.execute(f"INSERT INTO {name} SELECT * FROM {_NEXT}")
        connection.unregister(_NEXT)

    def close(self) -> None:
        """Forgets all."""
        self._connection.disconnect()
