package dev.antipode.postgresql;

import java.util.Locale;

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

  /** Whether it may return data (SHIM-44). */
  boolean mayRead(String text) {
    boolean isReturning = this == WRITE && text != null && text.toLowerCase(Locale.ROOT).contains("returning");
    return this == READ || this == MAYBE || isReturning;
  }

  /** Whether it may change data. */
  boolean mayWrite() {
    return this == WRITE || this == MAYBE || this == END_PREPARED;
  }
}
