"""What `antipode init` makes in the database: a table of epochs, and functions that tell a server's history.

The table has one row a timeline: a random word, written by the first wrapped writer. It is a mark (EPOCH-16): it lies
in the log before every position that names it, so whoever shows it is on that branch. The ends of timelines are the
server's own knowledge (EPOCH-23), so nothing is written once a second.
"""

from __future__ import annotations

from typing import Final

from antipode_postgresql import branch_rows, ownership

CREATE_TABLE: Final = """CREATE TABLE IF NOT EXISTS antipode.epochs (
  system   pg_catalog.text NOT NULL,
  timeline integer NOT NULL,
  word     pg_catalog.text NOT NULL,
  counter  numeric(20) NOT NULL DEFAULT 0,
  made_at  pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now(),
  made_in  pg_catalog.name NOT NULL DEFAULT current_database(),
  PRIMARY KEY (system, timeline, word)
)"""

# The row is there before anybody is given a position with its word. Flushed even where commits are asynchronous: it
# must not be lost when positions that name it are kept.
CREATE_MARK: Final = """CREATE OR REPLACE FUNCTION antipode.mark() RETURNS pg_catalog.text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own pg_catalog.text := (SELECT system_identifier::pg_catalog.text FROM pg_control_system());
  now_on integer := ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::integer;
  found_word pg_catalog.text;
BEGIN
  SELECT word INTO found_word FROM antipode.epochs WHERE system = own AND timeline = now_on AND counter = 0 LIMIT 1;
  IF found_word IS NULL THEN
    PERFORM pg_advisory_xact_lock(5211914350102);
    SELECT word INTO found_word FROM antipode.epochs WHERE system = own AND timeline = now_on AND counter = 0 LIMIT 1;
  END IF;
  IF found_word IS NULL THEN
    IF current_setting('synchronous_commit') = 'off' THEN
      PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    found_word := substr(replace(gen_random_uuid()::pg_catalog.text, '-', ''), 1, 6);
    INSERT INTO antipode.epochs (system, timeline, word) VALUES (own, now_on, found_word);
    DELETE FROM antipode.epochs AS old WHERE old.made_at <
      (SELECT made_at FROM antipode.epochs ORDER BY made_at DESC OFFSET 1000 LIMIT 1);
  END IF;
  RETURN found_word;
END $$"""

# The position is read before the timeline: what was replayed when the first was read lies on the second's branch, or
# on one that it came from.
CREATE_PLACE: Final = """CREATE OR REPLACE FUNCTION antipode.place(
  OUT recovering boolean, OUT reached pg_catalog.text, OUT timeline integer, OUT system pg_catalog.text,
  OUT started pg_catalog.text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  recovering := pg_is_in_recovery();
  IF recovering THEN
    reached := pg_last_wal_replay_lsn()::pg_catalog.text;
    timeline := (SELECT received_tli FROM pg_stat_get_wal_receiver());
  ELSE
    reached := pg_current_wal_flush_lsn()::pg_catalog.text;
    timeline := ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::integer;
  END IF;
  system := (SELECT system_identifier::pg_catalog.text FROM pg_control_system());
  started := pg_postmaster_start_time()::pg_catalog.text;
END $$"""

CREATE_HISTORIES: Final = """CREATE OR REPLACE FUNCTION antipode.histories(
  OUT timeline integer, OUT history pg_catalog.text)
RETURNS SETOF record LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT ('x' || left(name, 8))::bit(32)::integer, pg_read_file('pg_wal/' || name)
  FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{8}\\.history$'
  UNION ALL
  SELECT (SELECT timeline_id FROM pg_control_checkpoint()), NULL
$$"""

# Joins lineages of positions, store by store and epoch by epoch; what it cannot join is kept beside, after a space.
CREATE_JOINED: Final = """CREATE OR REPLACE FUNCTION antipode.joined(
  kept pg_catalog.text, added pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  plain CONSTANT pg_catalog.text := '^1(~[A-Za-z0-9-][A-Za-z0-9_-]*(\\.\\.[A-Za-z0-9-]+\\.[0-9]+)+)+$';
  result pg_catalog.text;
  others pg_catalog.text;
BEGIN
  IF kept IS NULL OR kept = added THEN RETURN added; END IF;
  WITH texts AS (SELECT DISTINCT one FROM unnest(string_to_array(kept || ' ' || added, ' ')) AS one),
  entries AS (
    SELECT section[1] AS store, entry[1] AS epoch, max(entry[2]::numeric) AS counter
    FROM texts,
      regexp_matches(one, '~([^.~]+)((?:\\.\\.[^.~]+\\.[0-9]+)+)', 'g') AS section,
      regexp_matches(section[2], '\\.\\.([^.~]+)\\.([0-9]+)', 'g') AS entry
    WHERE one ~ plain GROUP BY 1, 2),
  sections AS (
    SELECT store, string_agg('..' || epoch || '.' || counter, '' ORDER BY epoch COLLATE "C") AS entries
    FROM entries GROUP BY store)
  SELECT (SELECT '1' || string_agg('~' || store || sections.entries, '' ORDER BY store COLLATE "C") FROM sections),
    (SELECT string_agg(one, ' ') FROM texts WHERE one !~ plain AND one <> '')
  INTO result, others;
  result := concat_ws(' ', result, others);
  IF length(result) > 3072 THEN RETURN '1~_.i'; END IF;
  RETURN result;
END $$"""

CREATE_KEEP: Final = """CREATE OR REPLACE FUNCTION antipode.keep() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own pg_catalog.text := nullif(current_setting('antipode.lineage', true), '');
BEGIN
  IF TG_OP = 'INSERT' THEN
    NEW.antipode := own;
  ELSIF own IS NULL THEN
    NEW.antipode := OLD.antipode;
  ELSE
    NEW.antipode := antipode.joined(OLD.antipode, own);
  END IF;
  RETURN NEW;
END $$"""


CALLS: Final = (
    "SELECT antipode.mark(), (SELECT timeline FROM antipode.place()), (SELECT count(*) FROM antipode.histories())"
)
REVOKE: Final = "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA antipode FROM PUBLIC"


def column(table: str) -> tuple[str, ...]:
    """What a table needs for lineages beside its rows; `table` is a quoted name."""
    return (
        f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS antipode pg_catalog.text",
        f"CREATE OR REPLACE TRIGGER antipode_keep BEFORE INSERT OR UPDATE ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION antipode.keep()",
    )


def may_call(function: str) -> str:
    """An expression: whether the user may call one of our functions. Never an error, also without a right to look."""
    return (
        "coalesce((SELECT has_function_privilege(p.oid, 'EXECUTE') AND has_schema_privilege(n.oid, 'USAGE')"
        " FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace"
        f" WHERE n.nspname = 'antipode' AND p.proname = '{function}'), false)"
    )


MAY_READ_EPOCHS: Final = (
    "coalesce((SELECT has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')"
    " FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'antipode' AND c.relname = 'epochs'), false)"
)


def grants(user: str) -> tuple[str, ...]:
    """What a login needs; `user` is a quoted identifier."""
    return (
        f"GRANT USAGE ON SCHEMA antipode TO {user}",
        f"GRANT SELECT ON antipode.epochs TO {user}",
        f"GRANT EXECUTE ON FUNCTION antipode.mark(), antipode.place(), antipode.histories(), antipode.keep() TO {user}",
    )


def statements(user: str = "", *, branches: bool = False, table: str = "") -> tuple[str, ...]:
    """All that `antipode init` runs, as one transaction, which ends by calling what it made.

    `user` is a quoted identifier, `table` a quoted name; empty: no grants, no table.
    """
    more = (branch_rows.CREATE, branch_rows.CREATE_INDEX) if branches else ()
    rights = (*grants(user), *([branch_rows.grant(user)] if branches else [])) if user else ()
    return (
        "BEGIN",
        ownership.SEARCH_PATH,
        *ownership.TAKE_OVER,
        CREATE_TABLE,
        *more,
        CREATE_MARK,
        CREATE_PLACE,
        CREATE_HISTORIES,
        CREATE_JOINED,
        CREATE_KEEP,
        REVOKE,
        *rights,
        CALLS,
        *ownership.GIVE_BACK,
        *(column(table) if table else ()),
        "COMMIT",
    )
