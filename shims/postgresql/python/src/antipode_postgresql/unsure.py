"""What of a database makes texts unsure that look like reads: its own functions, views and operators (SHIM-43).

The server is asked for their names once, when a client is wrapped; a text that names one may write, and then the server
is asked at the commit whether it did. The question and its cases are in `shims/postgresql/statements.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from antipode_postgresql.statements import HARMLESS

QUESTION: Final = r"""WITH RECURSIVE own AS (
 SELECT p.oid, p.proname, p.pronargs, p.proargtypes FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE p.provolatile = 'v' AND p.prokind <> 'p' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'antipode')),
operators AS (SELECT o.oid, o.oprname FROM pg_operator AS o JOIN own ON own.oid = o.oprcode),
means AS (
 SELECT 'pg_proc'::regclass AS class, oid FROM own UNION ALL SELECT 'pg_operator'::regclass, oid FROM operators),
relations AS (
 (SELECT r.ev_class AS oid FROM pg_rewrite AS r JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass
   AND d.objid = r.oid JOIN means AS m ON m.class = d.refclassid AND m.oid = d.refobjid
  UNION
  SELECT l.polrelid FROM pg_policy AS l JOIN pg_depend AS d ON d.classid = 'pg_policy'::regclass
   AND d.objid = l.oid JOIN means AS m ON m.class = d.refclassid AND m.oid = d.refobjid
  UNION
  SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relkind = 'v' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
   AND pg_get_viewdef(c.oid) ~* '\m(nextval|setval|lo_\w+|lowrite|pg_logical_emit_message)\s*\(')
 UNION
 SELECT r.ev_class FROM relations AS v JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass
  AND d.refobjid = v.oid AND d.classid = 'pg_rewrite'::regclass JOIN pg_rewrite AS r ON r.oid = d.objid)
SELECT 'function', proname FROM own
UNION SELECT 'word', proname FROM own JOIN pg_type AS t ON t.oid = own.proargtypes[0]
 WHERE own.pronargs = 1 AND t.typtype = 'c'
UNION SELECT 'word', c.relname FROM relations AS v JOIN pg_class AS c ON c.oid = v.oid
UNION SELECT 'operator', oprname FROM operators"""
"""Rows of what it is and its name: a function, a word (a view, a table with a policy, a column that is a call)."""


def unsure_words(rows: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Those of the rows that a text classed as a read may hold: other calls are unsure by themselves."""
    return tuple((what, name) for what, name in rows if what != "function" or name.lower().encode() in HARMLESS)


def pattern_of(words: Iterable[tuple[str, str]]) -> re.Pattern[bytes] | None:
    """Return what finds one of them in a text; None where there are none."""
    parts = [
        escaped if what == "operator" else rb"(?<![\w$\x80-\xff])" + escaped + rb"(?![\w$\x80-\xff])"
        for what, name in words
        for escaped in [re.escape(name.encode())]
    ]
    return re.compile(b"|".join(parts), re.IGNORECASE) if parts else None
