package dev.antipode.postgresql;

import java.util.regex.Pattern;

/** What becomes of data by a statement. */
enum Kind {
  /** Nothing. */
  READ,
  /** SET, RESET, DISCARD, ROLLBACK TO: no data, but what the transaction's settings are. */
  SESSION,
  /** One INSERT, UPDATE, DELETE or MERGE. */
  WRITE,
  /** A function, a procedure, DDL, several statements: whatever it is, it may write. */
  MAYBE,
  /** It ends a transaction. */
  COMMIT,
  /** It ends one, and nothing of it is left. */
  ROLLBACK,
  /** PREPARE TRANSACTION: the transaction is not over, though the connection is free. */
  PREPARE,
  /** COMMIT PREPARED, ROLLBACK PREPARED. */
  END_PREPARED;

  private static final Pattern READS = Pattern.compile("(?i)returning|\\b(?:with|select)\\b");

  /** Return whether it may return data, or write what it has read (SHIM-44). */
  boolean mayRead(String text) {
    return this == READ || this == MAYBE || (this == WRITE && text != null && READS.matcher(text).find());
  }

  /** Whether it may change data. */
  boolean mayWrite() {
    return this == WRITE || this == MAYBE || this == END_PREPARED;
  }

  /** Return whether the transaction may outlive the connection when this is sent, and its answer does not come. */
  boolean mayCommit() {
    return this == COMMIT || this == PREPARE || this == END_PREPARED;
  }
}
