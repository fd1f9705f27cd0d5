"""Whose the functions in the database are, and who could bend them: the owner role, and what `init` refuses (SHIM-46).

They run with their owner's rights. So the owner is a role of their own with the two rights that they need, nothing of
a stranger's lies where they look, and a schema that is somebody else's is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

OWNER: Final = "antipode_owner"
SEARCH_PATH: Final = "SET LOCAL search_path = pg_catalog, pg_temp"
"""Where a path does not name pg_temp, it is searched first: the caller's own types would run as the owner."""
ADMINISTRATOR: Final = (
    "as an administrator (a superuser, or a role that may create roles, is in pg_monitor and has EXECUTE ON FUNCTION "
    "pg_read_file(text) WITH GRANT OPTION)"
)
RIGHTS: Final = """SELECT rolsuper OR (rolcreaterole AND pg_has_role(oid, 'pg_monitor', 'MEMBER')
  AND has_function_privilege(oid, 'pg_catalog.pg_read_file(text)', 'EXECUTE WITH GRANT OPTION')
  AND has_database_privilege(oid, current_database(), 'CREATE'))
 FROM pg_roles WHERE rolname = current_user"""
_OURS: Final = "('epochs', 'branches')"

TAKE_OVER: Final = (
    f"""DO $$
DECLARE
  command pg_catalog.text;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{OWNER}') THEN
    CREATE ROLE {OWNER} NOLOGIN;
  END IF;
  IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    EXECUTE format('GRANT {OWNER} TO %I', current_user);
  END IF;
  IF NOT pg_has_role('{OWNER}', 'pg_monitor', 'MEMBER') THEN
    GRANT pg_monitor TO {OWNER};
  END IF;
  GRANT EXECUTE ON FUNCTION pg_catalog.pg_read_file(pg_catalog.text) TO {OWNER};
  CREATE SCHEMA IF NOT EXISTS antipode AUTHORIZATION {OWNER};
  ALTER SCHEMA antipode OWNER TO {OWNER};
  REVOKE CREATE ON SCHEMA antipode FROM PUBLIC;
  FOR command IN
    SELECT format('ALTER TABLE antipode.%I OWNER TO {OWNER}', relname) FROM pg_class
    WHERE relnamespace = 'antipode'::regnamespace AND relname IN {_OURS}
    UNION ALL
    SELECT format('ALTER FUNCTION %s OWNER TO {OWNER}', oid::regprocedure) FROM pg_proc
    WHERE pronamespace = 'antipode'::regnamespace AND proname IN ('mark', 'place', 'histories', 'joined', 'keep')
  LOOP
    EXECUTE command;
  END LOOP;
END $$""",
    f"SET LOCAL ROLE {OWNER}",
)
"""The role, its two rights, and what an earlier release made; what follows is made by that role."""
GIVE_BACK: Final = (
    "RESET ROLE",
    f"""DO $$ BEGIN
  IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    EXECUTE format('REVOKE {OWNER} FROM %I', current_user);
  END IF;
END $$""",
    "SET LOCAL search_path TO DEFAULT",
)

_STRANGE: Final = f"""WITH place AS (SELECT * FROM pg_namespace WHERE nspname = 'antipode'),
trusted AS (SELECT oid FROM pg_roles WHERE rolname IN ({{trusted}}) OR rolsuper AND {{superusers}}),
tables AS (SELECT c.* FROM pg_class AS c, place AS p WHERE c.relnamespace = p.oid AND c.relname IN {_OURS})
SELECT 'schema antipode belongs to ' || pg_get_userbyid(nspowner) FROM place
 WHERE nspowner NOT IN (SELECT oid FROM trusted)
UNION ALL
SELECT 'antipode.' || c.relname || ' belongs to ' || pg_get_userbyid(c.relowner) FROM pg_class AS c, place AS p
 WHERE c.relnamespace = p.oid AND c.relowner NOT IN (SELECT oid FROM trusted)
UNION ALL
SELECT 'function ' || f.oid::regprocedure || ' belongs to ' || pg_get_userbyid(f.proowner)
 FROM pg_proc AS f, place AS p WHERE f.pronamespace = p.oid AND f.proowner NOT IN (SELECT oid FROM trusted)
UNION ALL
SELECT 'type antipode.' || t.typname || ' belongs to ' || pg_get_userbyid(t.typowner) FROM pg_type AS t, place AS p
 WHERE t.typnamespace = p.oid AND t.typrelid = 0 AND t.typelem = 0 AND t.typowner NOT IN (SELECT oid FROM trusted)
UNION ALL
SELECT 'antipode.' || relname || ' is no plain table' FROM tables WHERE relkind <> 'r' OR relrowsecurity
 OR EXISTS (SELECT FROM pg_inherits WHERE inhrelid = tables.oid OR inhparent = tables.oid)
UNION ALL
SELECT 'trigger ' || tgname || ' on antipode.' || relname FROM pg_trigger JOIN tables ON tgrelid = tables.oid
 WHERE NOT tgisinternal
UNION ALL
SELECT 'rule ' || rulename || ' on antipode.' || relname FROM pg_rewrite JOIN tables ON ev_class = tables.oid
UNION ALL
SELECT 'constraint ' || conname || ' on antipode.' || relname FROM pg_constraint JOIN tables ON conrelid = tables.oid
 WHERE contype NOT IN ('p', 'n')
UNION ALL
SELECT 'index ' || i.indexrelid::regclass || ' computes something'
 FROM pg_index AS i JOIN tables ON indrelid = tables.oid WHERE i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
UNION ALL
SELECT 'column ' || attname || ' of antipode.' || relname || ' is not as init makes it'
 FROM pg_attribute JOIN tables ON attrelid = tables.oid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
 WHERE attnum > 0 AND NOT attisdropped AND ((SELECT typnamespace FROM pg_type WHERE oid = atttypid)
   <> 'pg_catalog'::regnamespace OR attgenerated <> ''
   OR pg_get_expr(adbin, adrelid) NOT IN ('now()', 'current_database()', '0', '(0)::numeric'))
UNION ALL
SELECT 'role {OWNER} ' || CASE WHEN rolsuper THEN 'is a superuser' WHEN rolcanlogin THEN 'may log in'
   ELSE 'may create roles or databases, replicate or pass by row security' END
 FROM pg_roles WHERE rolname = '{OWNER}'
 AND (rolsuper OR rolcanlogin OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)
UNION ALL
SELECT pg_get_userbyid(m.member) || ' is a member of {OWNER}' FROM pg_auth_members AS m
 JOIN pg_roles AS r ON r.oid = m.member
 WHERE m.roleid = (SELECT oid FROM pg_roles WHERE rolname = '{OWNER}') AND NOT r.rolsuper AND NOT r.rolcreaterole
UNION ALL
SELECT '{OWNER} is a member of ' || pg_get_userbyid(roleid) FROM pg_auth_members
 WHERE member = (SELECT oid FROM pg_roles WHERE rolname = '{OWNER}') AND pg_get_userbyid(roleid) <> 'pg_monitor'"""

EARLIER: Final = f"""SELECT f.oid::regprocedure || ' runs as ' || pg_get_userbyid(f.proowner)
 || CASE WHEN 'search_path=pg_catalog, pg_temp' = ANY (coalesce(f.proconfig, '{{}}')) THEN ''
    ELSE ', and finds types that its caller makes' END
 FROM pg_proc AS f JOIN pg_namespace AS p ON p.oid = f.pronamespace
 WHERE p.nspname = 'antipode' AND f.proname IN ('mark', 'place', 'histories', 'joined', 'keep')
 AND (pg_get_userbyid(f.proowner) <> '{OWNER}'
   OR NOT 'search_path=pg_catalog, pg_temp' = ANY (coalesce(f.proconfig, '{{}}')))"""
"""Functions that an earlier release left: each line says what is unsafe."""


def strange(users: Sequence[str] = (), *, superusers: bool) -> str:
    """A query: what in the schema is not as `init` makes it, a line each.

    Owners that are no finding: the owner role, `users`, and with `superusers` every one of those.
    """
    names = ", ".join("'" + name.replace("'", "''") + "'" for name in (OWNER, *users))
    return _STRANGE.format(trusted=names, superusers=str(superusers).lower())
