package dev.antipode.postgresql;

/** What is asked on the application's connection and on our own. */
final class Questions {
  /**
   * The timeline in force now: a connection lives on when its standby is promoted. Never the insert position as a version:
   * it may lie behind the next page's header, where no record ends, or behind what somebody else has not committed. It is
   * asked for only as a bound for what was not flushed when it was read.
   */
  static final String PLACE = "SELECT pg_walfile_name('0/1000000'), pg_current_wal_flush_lsn()::text,"
      + " pg_current_wal_insert_lsn()::text, current_setting('synchronous_commit')";

  /** Before the COMMIT: what SET LOCAL said is gone after it. */
  static final String HOW = "SELECT current_setting('synchronous_commit'), true";

  static final String HOW_AND_WHETHER =
      "SELECT current_setting('synchronous_commit'), pg_current_xact_id_if_assigned() IS NOT NULL";

  /**
   * A commit of nothing, flushed: everything before it in the log is flushed then. It waits for no standby: the application's own
   * commit did, or was told not to (SHIM-2).
   */
  static final String FLUSH = "BEGIN; SELECT"
      + " set_config('synchronous_commit', 'local', true), pg_logical_emit_message(true, 'antipode', '')::text; COMMIT; "
      + PLACE;

  static final String FACTS = "SELECT system_identifier::text, " + mayCall("mark")
      + ", (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size') FROM pg_control_system()";

  static final String MARK = "SELECT antipode.mark()";

  /** The settings by which a server loses in a crash what it has acknowledged or replayed (SHIM-45). */
  static final String DURABLE = "current_setting('fsync'), current_setting('full_page_writes')";

  /** Asked when a client is wrapped (SHIM-3). */
  static final String FITNESS = "SELECT pg_is_in_recovery(), pg_backend_pid(), current_setting('synchronous_commit'),"
      + " current_setting('wal_level'), current_setting('server_version_num'), current_user::text, " + mayCall("mark")
      + ", " + DURABLE;

  /** When the server was started: a number, for the text of a time depends on the session's zone. */
  static final String STARTED = "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text";

  /** Which life of which server a connection reaches, and whether its transaction keeps a snapshot. */
  static final String LIFE = "SELECT " + STARTED + ", current_setting('transaction_isolation')";

  /** Likewise, with a row for each cursor that is open, and one without a name where none is. */
  static final String LIFE_AND_CURSORS =
      LIFE + ", c.name FROM (SELECT 1) AS one LEFT JOIN pg_catalog.pg_cursors AS c ON c.name <> ''";

  /**
   * Beside the position that judges, what covers all that can be seen (EPOCH-31). On a primary the insert position: what
   * was read may have been committed asynchronously. On a standby what it has received: a commit can be seen there a moment
   * before it counts as replayed.
   */
  static final String COVER = "SELECT p.reached, p.timeline, p.system,"
      + " CASE WHEN p.recovering THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_insert_lsn() END::text,"
      + " (SELECT word FROM antipode.epochs AS e"
      + "  WHERE e.system = p.system AND e.timeline = p.timeline AND e.counter = 0 LIMIT 1),"
      + " (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size'), p.recovering"
      + " FROM antipode.place() AS p";

  static final String MAY_READ_EPOCHS =
      "coalesce((SELECT has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')"
          + " FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
          + " WHERE n.nspname = 'antipode' AND c.relname = 'epochs'), false)";

  private Questions() {}

  /** Whether the user may call one of our functions. Never an error, also without a right to look. */
  static String mayCall(String function) {
    return "coalesce((SELECT has_function_privilege(p.oid, 'EXECUTE') AND has_schema_privilege(n.oid, 'USAGE')"
        + " FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace"
        + " WHERE n.nspname = 'antipode' AND p.proname = '" + function + "'), false)";
  }

  /** A text as a literal. */
  static String quoted(String text) {
    return "'" + text.replace("'", "''") + "'";
  }
}
